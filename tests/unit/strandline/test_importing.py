"""The import: what is sent, where it goes on after an end of any kind, what it reports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pytest

from agents.stages.router import run_id_of
from connectors.base import Item, ReadOptions, Skipped
from strandline import importing
from strandline.import_state import CheckpointFile
from strandline.importing import Import, Tally, run_import
from tests.doubles.memory_log import MemoryLog
from topics import ids
from topics.envelope import Outgoing
from topics.errors import Outage, Refused
from topics.keys import derived_id
from topics.records import RunEvent, RunState, SourceEvent

AT = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
TEXTS = tuple(f"Text number {number}." for number in range(7))


@dataclass
class ListSource:
    """A file source whose items are given. Its cursor is a number, and the file's first line says how it was written."""

    outcomes: tuple[SourceEvent | Skipped, ...]
    name: str = "list"

    def detect(self, path: Path) -> bool:
        return path.is_file()

    def size(self, path: Path) -> int:
        if not path.exists():
            raise Refused(f"{path} does not exist", field="path")
        return len(self.outcomes)

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        writing = path.read_text()
        written, _, number = options.after.partition(":")
        if options.after and written != writing:
            raise Refused("the file was rewritten since", field="after")
        for index, outcome in enumerate(self.outcomes[int(number or 0) :], start=int(number or 0) + 1):
            yield Item(outcome, f"{writing}:{index}", index)


def event(text: str, change: Literal["upsert", "delete"] = "upsert") -> SourceEvent:
    return SourceEvent(
        user_id="ada",
        event_id=derived_id("test", text, change),
        connector="list",
        instance_id="list",
        object_kind="message",
        object_id=f"object of {text[:20]}",
        version="1",
        change=change,
        ingest="import",
        occurred_at=AT,
        observed_at=AT,
        text=text,
        content_hash="0" * 64,
    )


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "_BATCH_ITEMS", 2)
    monkeypatch.setattr(importing, "_PAUSE", timedelta(milliseconds=1))


@pytest.fixture
def job(tmp_path: Path) -> Import:
    path = tmp_path / "mail"
    path.write_text("first")
    return Import(
        path=path,
        source=ListSource(tuple(map(event, TEXTS))),
        options=ReadOptions("ada"),
        state_folder=tmp_path / "state",
        report=tmp_path / "report.jsonl",
        follow=False,
    )


def sent(log: MemoryLog) -> list[str]:
    return [record.text for record in log.records("source.events") if isinstance(record, SourceEvent)]


def unseen(tally: Tally) -> None:
    """An observer that looks at nothing."""


async def test_everything_is_sent_in_order(job: Import) -> None:
    log = MemoryLog()
    tally = await run_import(job, log, unseen)
    assert sent(log) == list(TEXTS)
    assert (tally.sent, tally.phase, tally.done_bytes) == (7, "done", 7)


async def test_importing_again_says_nothing_new_and_sends_nothing(job: Import) -> None:
    log = MemoryLog()
    await run_import(job, log, unseen)
    tally = await run_import(job, log, unseen)
    assert tally.nothing_new
    assert (tally.sent, tally.sent_before) == (0, 7)
    assert sent(log) == list(TEXTS)


async def test_again_reads_from_the_start_with_the_same_ids(job: Import) -> None:
    log = MemoryLog()
    await run_import(job, log, unseen)
    await run_import(replace(job, again=True), log, unseen)
    assert sent(log) == list(TEXTS) * 2
    assert len({record.event_id for record in log.records("source.events") if isinstance(record, SourceEvent)}) == 7


@pytest.mark.parametrize("calls", range(1, 5))
async def test_an_import_that_dies_anywhere_loses_nothing_and_goes_on(job: Import, calls: int) -> None:
    log, seen = MemoryLog(), 0

    def dies(tally: Tally) -> None:
        nonlocal seen
        seen += 1
        if seen == calls:
            raise asyncio.CancelledError

    with suppress(asyncio.CancelledError):
        await run_import(job, log, dies)
    before = len(sent(log))
    tally = await run_import(job, log, unseen)
    assert list(dict.fromkeys(sent(log))) == list(TEXTS)
    assert tally.sent_before + tally.sent == 7
    assert len(sent(log)) == before + tally.sent


async def test_a_death_between_log_and_checkpoint_repeats_with_the_same_ids(
    job: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MemoryLog()

    def dies(self: object, checkpoint: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as dying:
        dying.setattr(CheckpointFile, "save", dies)
        with pytest.raises(OSError, match="no space left"):
            await run_import(job, log, unseen)
    await run_import(job, log, unseen)
    assert sent(log) == [*TEXTS[:2], *TEXTS]


async def test_another_log_starts_from_the_beginning(job: Import) -> None:
    await run_import(job, MemoryLog("one"), unseen)
    other = MemoryLog("two")
    await run_import(job, other, unseen)
    assert sent(other) == list(TEXTS)


async def test_a_path_that_grew_gives_only_what_is_new(job: Import) -> None:
    log = MemoryLog()
    await run_import(replace(job, source=ListSource(tuple(map(event, TEXTS[:4])))), log, unseen)
    tally = await run_import(job, log, unseen)
    assert (tally.sent, tally.sent_before) == (3, 4)
    assert sent(log) == list(TEXTS)


async def test_a_path_that_was_rewritten_is_read_from_the_start(job: Import) -> None:
    log = MemoryLog()
    await run_import(job, log, unseen)
    job.path.write_text("second")
    assert (await run_import(job, log, unseen)).sent == 7


async def test_a_path_that_is_missing_is_refused(job: Import) -> None:
    job.path.unlink()
    with pytest.raises(Refused, match="does not exist"):
        await run_import(job, MemoryLog(), unseen)


async def test_a_log_that_is_away_from_the_start_is_told_at_once(job: Import) -> None:
    log = MemoryLog()
    log.away = True
    with pytest.raises(Outage):
        await run_import(job, log, unseen)


async def test_a_log_that_goes_away_is_waited_for(job: Import) -> None:
    log, phases = MemoryLog(), []

    def watch(tally: Tally) -> None:
        phases.append(tally.phase)
        log.away = tally.sent == 2 and phases.count("waiting for the log") < 3

    tally = await run_import(job, log, watch)
    assert sent(log) == list(TEXTS)
    assert (tally.sent, phases.count("waiting for the log")) == (7, 3)


async def test_skipped_items_are_counted_and_reported_with_where_they_lie(job: Import) -> None:
    skipped = Skipped("mail, byte 812", "malformed", "no header line")
    source = ListSource((event("a"), skipped, event("b"), replace(skipped, where="mail, byte 900")))
    tally = await run_import(replace(job, source=source), MemoryLog(), unseen)
    assert tally.skipped == {"malformed": 2}
    assert job.report is not None
    lines = [json.loads(line) for line in job.report.read_text().splitlines()]
    assert lines[0] == {"where": "mail, byte 812", "reason": "malformed", "detail": "no header line"}
    assert lines[1]["where"] == "mail, byte 900"


async def test_a_record_larger_than_the_topic_takes_is_skipped_alone(job: Import) -> None:
    log = MemoryLog()
    source = ListSource((event("a"), event("x" * 9_000_000), event("b")))
    tally = await run_import(replace(job, source=source), log, unseen)
    assert sent(log) == ["a", "b"]
    assert tally.skipped == {"oversized": 1}


async def test_deletions_and_events_without_words_are_told_apart(job: Import) -> None:
    source = ListSource((event("a", "delete"), event("  "), event("b")))
    tally = await run_import(replace(job, source=source), MemoryLog(), unseen)
    assert (tally.sent, tally.deletes, tally.wordless) == (3, 1, 1)


async def test_following_waits_for_every_run_and_tells_how_it_ended(job: Import) -> None:
    log = MemoryLog()
    source = ListSource((event("a"), event("b"), event("gone", "delete")))
    states: dict[str, RunState] = {"a": "complete", "b": "failed"}
    phases: list[str] = []

    async def work() -> None:
        """What a worker tells: also of runs of other people."""
        for text in ("stranger", "b", "a"):
            await log.append([run_event(event(text), states.get(text, "complete"))])

    def watch(tally: Tally) -> None:
        if tally.phase == "remembering" and "remembering" not in phases:
            working.append(asyncio.get_running_loop().create_task(work()))
        phases.append(tally.phase)

    working: list[asyncio.Task[None]] = []
    tally = await run_import(replace(job, source=source, follow=True), log, watch)
    await asyncio.gather(*working)
    assert (tally.complete, tally.failed, tally.awaited) == (1, 1, 0)
    assert job.report is not None
    assert [json.loads(line)["reason"] for line in job.report.read_text().splitlines()] == ["run_failed"]
    assert log.followers == 0


def run_event(of: SourceEvent, state: RunState) -> Outgoing:
    run_id = run_id_of(of)
    record = RunEvent(user_id=of.user_id, run_id=run_id, state=state, at=AT, accepted_at=AT, error="planted")
    return Outgoing("remember.runs", record, ids.run_event_id(run_id, "indexer", state), "indexer", AT)
