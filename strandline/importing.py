"""Import of a file or folder: read, send, remember how far, follow the runs.

    reader (thread) ─► batch ─► append to source.events, awaited ─► checkpoint ─► next batch
                                        remember.runs, followed from before the first batch ─► complete, failed

A checkpoint is written only after its batch is durable, so a kill at any moment loses nothing; what is read again afterwards has the same event ids and
is recognised. A checkpoint belongs to one log: when the log is another one, the import starts from the beginning.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from asyncio import FIRST_COMPLETED
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Literal, cast
from uuid import UUID

from agents.stages.router import is_remembered, run_id_of
from connectors.base import FileSource, Item, ReadOptions, Skipped
from strandline.import_state import Checkpoint, CheckpointFile, ReportFile
from topics.codec import decode, encode
from topics.envelope import Incoming, Outgoing
from topics.errors import Outage, Refused, Undecodable
from topics.log import Log
from topics.records import RunEvent, SourceEvent

RUNS = "remember.runs"
_BATCH_ITEMS = 500
_BATCH_BYTES = 2 * 1024 * 1024
_BATCH_SECONDS = 0.5
"""A slow reader still shows that it moves."""
_PATIENCE = timedelta(minutes=10)
"""How long an import under way waits for the log."""
_PAUSE = timedelta(seconds=1)

Phase = Literal["reading", "waiting for the log", "remembering", "done"]


@dataclass(slots=True)
class Tally:
    """How an import stands; handed to the observer whenever it changed, and once more at the end as the report."""

    phase: Phase = "reading"
    total_bytes: int = 0
    done_bytes: int = 0
    sent: int = 0
    """Events made durable by this call."""
    sent_before: int = 0
    """By earlier calls that this one went on from."""
    deletes: int = 0
    """Of the sent ones: deletions, which are not applied yet."""
    wordless: int = 0
    """Of the sent ones: without any words, so nothing to remember."""
    skipped: Counter[str] = field(default_factory=Counter)
    """By reason."""
    complete: int = 0
    failed: int = 0
    awaited: int = 0
    """Runs that have not ended yet."""
    moved_at: float = field(default_factory=time.monotonic)
    """Monotonic time of the last change."""

    @property
    def nothing_new(self) -> bool:
        return not self.sent and not self.skipped


Observer = Callable[[Tally], None]


@dataclass(frozen=True, slots=True)
class Import:
    """What is imported and how. `follow`: go on until the runs of all that was sent have ended."""

    path: Path
    source: FileSource
    options: ReadOptions
    state_folder: Path
    report: Path | None = None
    again: bool = False
    """Read from the start, whatever an earlier import has done."""
    follow: bool = True


async def run_import(job: Import, log: Log, observer: Observer) -> Tally:
    """Imports; safe to cancel and to repeat. `log` must know its id. Raises Refused for a path that cannot be read, Outage for a log that is away."""
    file = CheckpointFile.of(job.state_folder, log.log_id, job.source.name, job.path, job.options)
    checkpoint = Checkpoint() if job.again else file.load()
    tally = Tally(sent_before=checkpoint.sent)
    tally.total_bytes = await asyncio.to_thread(job.source.size, job.path)
    runs = _Runs(log, tally)
    async with AsyncExitStack() as opened:
        following = await opened.enter_async_context(_followed(log, runs)) if job.follow else None
        report = opened.enter_context(ReportFile(job.report, fresh=not checkpoint.cursor))
        items = await asyncio.to_thread(_from_checkpoint, job, checkpoint)
        while batch := await asyncio.to_thread(_next_batch, items):
            sent, skipped = await _send(batch, log, runs if job.follow else None, tally, observer)
            report.write(skipped)
            checkpoint = checkpoint.after(batch.cursor, sent=sent)
            await asyncio.to_thread(file.save, checkpoint)
            tally.done_bytes = batch.done_bytes
            _changed(tally, observer)
        if following is not None:
            tally.phase = "remembering"
            await runs.ended(following, observer)
            report.write(runs.failures)
    tally.phase = "done"
    _changed(tally, observer)
    return tally


def _changed(tally: Tally, observer: Observer) -> None:
    tally.moved_at = time.monotonic()
    observer(tally)


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Batch:
    events: tuple[SourceEvent, ...]
    skipped: tuple[Skipped, ...]
    cursor: str
    done_bytes: int


def _from_checkpoint(job: Import, checkpoint: Checkpoint) -> Iterator[Item]:
    """Items behind the checkpoint; all of them where the path was rewritten since, so that its cursor fits no more."""
    if checkpoint.cursor:
        items = job.source.read(job.path, replace(job.options, after=checkpoint.cursor))
        try:
            first = next(items, None)
            return iter(()) if first is None else itertools.chain([first], items)
        except Refused:
            pass
    return job.source.read(job.path, job.options)


def _next_batch(items: Iterator[Item]) -> _Batch | None:
    """None at the end."""
    events: list[SourceEvent] = []
    skipped: list[Skipped] = []
    last: Item | None = None
    size, until = 0, time.monotonic() + _BATCH_SECONDS
    for last in items:
        if isinstance(last.outcome, Skipped):
            skipped.append(last.outcome)
        else:
            events.append(last.outcome)
            size += len(last.outcome.text) + len(last.outcome.text_full)
        if len(events) + len(skipped) >= _BATCH_ITEMS or size >= _BATCH_BYTES or time.monotonic() >= until:
            break
    return None if last is None else _Batch(tuple(events), tuple(skipped), last.cursor, last.done_bytes)


# ── sending ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def _send(
    batch: _Batch, log: Log, runs: _Runs | None, tally: Tally, observer: Observer
) -> tuple[int, tuple[Skipped, ...]]:
    """Makes the batch durable; gives how many events were sent and what was skipped, too large ones included."""
    fitting, skipped = _fitting(batch)
    if runs is not None:
        runs.expect(fitting)  # before they are sent: a run may end before `append` returns
    await _append(log, [_outgoing(event) for event in fitting], tally, observer)
    tally.sent += len(fitting)
    tally.deletes += sum(event.change == "delete" for event in fitting)
    tally.wordless += sum(event.change == "upsert" and not is_remembered(event) for event in fitting)
    tally.skipped.update(item.reason for item in skipped)
    return len(fitting), skipped


def _fitting(batch: _Batch) -> tuple[list[SourceEvent], tuple[Skipped, ...]]:
    events, skipped = [], list(batch.skipped)
    for event in batch.events:
        try:
            encode(_outgoing(event))
            events.append(event)
        except Refused as error:
            skipped.append(Skipped(where=event.object_id, reason="oversized", detail=str(error)))
    return events, tuple(skipped)


def _outgoing(event: SourceEvent) -> Outgoing:
    return Outgoing(
        "source.events", event, id=event.event_id, sender="cli", time=event.occurred_at, subject=event.object_id
    )


async def _append(log: Log, records: list[Outgoing], tally: Tally, observer: Observer) -> None:
    """Waits for a log that is away; the ids are the same each time."""
    until = time.monotonic() + _PATIENCE.total_seconds()
    while True:
        try:
            await log.append(records)
        except Outage:
            if time.monotonic() > until or not (tally.sent or tally.sent_before):
                raise
            tally.phase = "waiting for the log"
            observer(tally)
            await asyncio.sleep(_PAUSE.total_seconds())
        else:
            tally.phase = "reading"
            return


# ── following ────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Runs:
    """The runs that sent events will have, until each has ended."""

    def __init__(self, log: Log, tally: Tally) -> None:
        self._log = log
        self._tally = tally
        self._awaited: dict[UUID, str] = {}
        self._all_ended = asyncio.Event()
        self.failures: list[Skipped] = []
        """Runs that failed or were rejected, by the object they were for."""

    def expect(self, events: list[SourceEvent]) -> None:
        self._awaited.update({run_id_of(event): event.object_id for event in events if is_remembered(event)})
        self._tally.awaited = len(self._awaited)

    async def follow(self, start: Mapping[int, int]) -> None:
        """For ever."""
        # A protocol's method cannot promise `aclose`; every implementation is a generator.
        stream = cast(AsyncGenerator[Incoming, None], self._log.follow(RUNS, start))
        async with aclosing(stream):
            async for incoming in stream:
                try:
                    record = decode(incoming)
                except Undecodable:
                    continue  # dead letters tell of it
                if isinstance(record, RunEvent) and record.run_id in self._awaited:
                    self._end(record)

    def _end(self, event: RunEvent) -> None:
        if event.state not in ("complete", "failed", "rejected"):
            return
        where = self._awaited.pop(event.run_id)
        if event.state == "complete":
            self._tally.complete += 1
        else:
            self._tally.failed += 1
            self.failures.append(Skipped(where, f"run_{event.state}", f"run {event.run_id}: {event.error}"))
        self._tally.awaited = len(self._awaited)
        self._tally.moved_at = time.monotonic()
        if not self._awaited:
            self._all_ended.set()

    async def ended(self, following: asyncio.Task[None], observer: Observer) -> None:
        """Returns when every run has ended; calls the observer every second, also when nothing moves."""
        while self._awaited and not following.done():
            observer(self._tally)
            self._all_ended.clear()
            all_ended = asyncio.create_task(self._all_ended.wait())
            try:
                await asyncio.wait({all_ended, following}, timeout=_PAUSE.total_seconds(), return_when=FIRST_COMPLETED)
            finally:
                all_ended.cancel()


@asynccontextmanager
async def _followed(log: Log, runs: _Runs) -> AsyncIterator[asyncio.Task[None]]:
    """The task that follows the runs from now on; its error, if it had one, is raised at the end."""
    start = await log.ends(RUNS)
    following = asyncio.create_task(runs.follow(start), name=f"follow {RUNS}")
    try:
        yield following
    finally:
        following.cancel()
        (ended,) = await asyncio.gather(following, return_exceptions=True)
    if isinstance(ended, Exception):
        raise ended
