"""A worker process with one toy stage, for tests: `python -m tests.integration.agents.toy_worker '<ToyOptions as JSON>'`.

The stage reads remember.requests, writes an effect a record into SQLite under the same rules as the real stores (position, epoch), and sends a
remember.texts for each. The first word of a text says how it behaves: fine, slow, poison, permanent, flaky, bug, big.
`off` names guards to be switched off: a test that still passes then shows nothing.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from agents.breaker import Breakers
from agents.contract import Delivery, Done, Fenced, GaveUp, Result, RetryPolicy, RunNote, Stage, Turn
from agents.kafka_host import app as host_app
from agents.kafka_host import faust_internals, process
from agents.kafka_host.options import WorkerOptions
from agents.kafka_host.process import run_worker
from agents.lanes import Lanes
from agents.metrics import Metrics
from graph.model import Fence
from topics.clock import SystemClock
from topics.envelope import Outgoing
from topics.errors import Refused, Retryable
from topics.kafka.log import KafkaLog
from topics.keys import derived_id
from topics.records import RememberRequest, RememberText
from topics.registry import MAX_WORK_BYTES


@dataclass(frozen=True)
class ToyOptions:
    bootstrap: str
    prefix: str
    store: str
    port: int
    slow_s: float = 0.5
    work_s: float = 0.005
    grace_s: float = 20.0
    session_s: float = 6.0
    stall_exit_s: float = 600.0
    fenced: bool = True
    off: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        return f"{self.prefix}toy"

    def as_argument(self) -> str:
        return json.dumps(asdict(self))


class ToyStore:
    """Effects in SQLite: each once, in order, and none by a worker that was overtaken."""

    def __init__(self, path: str, *, positions: bool = True, epochs: bool = True) -> None:
        self._positions, self._epochs = positions, epochs
        self._db = sqlite3.connect(path, isolation_level=None, timeout=30)
        self._db.execute("pragma journal_mode=wal")
        self._db.execute("create table if not exists head (dataset text primary key, position int)")
        self._db.execute("create table if not exists owner (partition text primary key, epoch int)")
        self._db.execute("create table if not exists effect (dataset text, number int, pid int)")

    async def raise_epochs(self, partitions: Sequence[str]) -> Mapping[str, int]:
        self._db.execute("begin immediate")
        for each in partitions:
            self._db.execute("insert into owner values (?, 1) on conflict do update set epoch = epoch + 1", (each,))
        epochs = {each: self._epoch(each) for each in partitions}
        self._db.execute("commit")
        return epochs

    def apply(self, fence: Fence, deliveries: Sequence[Delivery[RememberRequest]]) -> None:
        self._db.execute("begin immediate")
        try:
            if self._epochs and self._epoch(fence.partition) > fence.epoch:
                raise Fenced(f"another worker owns {fence.partition}")
            for delivery in deliveries:
                self._apply(delivery)
        except BaseException:
            self._db.execute("rollback")
            raise
        self._db.execute("commit")

    def _apply(self, delivery: Delivery[RememberRequest]) -> None:
        dataset, position = delivery.record.dataset, delivery.incoming.offset
        row = self._db.execute("select position from head where dataset = ?", (dataset,)).fetchone()
        if self._positions and row is not None and position <= row[0]:
            return
        self._db.execute("insert into effect values (?, ?, ?)", (dataset, number_of(delivery.record), os.getpid()))
        self._db.execute("insert or replace into head values (?, ?)", (dataset, position))

    def _epoch(self, partition: str) -> int:
        row = self._db.execute("select epoch from owner where partition = ?", (partition,)).fetchone()
        return row[0] if row else 0

    def effects(self) -> dict[str, list[int]]:
        """Numbers by dataset, in the order of their commits."""
        found: dict[str, list[int]] = {}
        for dataset, number in self._db.execute("select dataset, number from effect order by rowid"):
            found.setdefault(dataset, []).append(number)
        return found

    def close(self) -> None:
        self._db.close()


def number_of(record: RememberRequest) -> int:
    return int(record.text.split()[1])


class ToyStage:
    def __init__(self, options: ToyOptions) -> None:
        self._options = options
        self._flakes: dict[int, int] = {}

    async def run(self, turn: Turn[RememberRequest], store: ToyStore) -> list[Result]:
        await asyncio.sleep(self._options.work_s)
        for record in turn.records:
            await self._behave(record.text.split()[0], number_of(record))
        good = [each for each in turn.deliveries if each.record.text.split()[0] != "poison"]
        store.apply(turn.fence, good)
        return [self._result(each.record) for each in turn.deliveries]

    async def _behave(self, how: str, number: int) -> None:
        match how:
            case "slow":
                await asyncio.sleep(self._options.slow_s)
            case "permanent":
                raise Refused(f"{number} can never work")
            case "bug":
                raise KeyError(number)
            case "flaky" if self._flakes.setdefault(number, 0) < 2:
                self._flakes[number] += 1
                raise Retryable("try again")

    def _result(self, record: RememberRequest) -> Result:
        how, number = record.text.split()[0], number_of(record)
        if how == "poison":
            return GaveUp(Refused(f"{number} is poison"))
        text = "x" * MAX_WORK_BYTES if how == "big" else record.text
        sent = RememberText(
            user_id=record.user_id,
            dataset=record.dataset,
            run_id=record.run_id,
            artifact_id=derived_id("artifact", str(record.run_id)),
            seq=number + 1,
            text=text,
            valid_at=record.reference_time,
            accepted_at=record.accepted_at,
        )
        outgoing = Outgoing("remember.texts", sent, derived_id("text", str(record.run_id)), "toy", record.accepted_at)
        return Done((outgoing,), RunNote(record.run_id, record.accepted_at, "queryable"))


class WithoutPrefix(Lanes[host_app.KafkaRecord]):
    """Guard off: acknowledges whatever is handled."""

    def _settle(self, turn, claim) -> None:  # type: ignore[no-untyped-def]
        super()._settle(turn, claim)
        for entry in [entry for entry in claim.delivered if entry.done]:
            claim.delivered.remove(entry)
            entry.record.ack()
            self._count(-1)


def switch_off(guards: Sequence[str]) -> None:
    async def unchecked(*args: object, **options: object) -> tuple[str, ...]:
        return ()

    if "prefix" in guards:
        vars(host_app)["Lanes"] = WithoutPrefix
    if "grace" in guards:
        vars(process)["os"] = None
    if "forget" in guards:
        faust_internals.LaneConsumer.forget = lambda self, message: None  # type: ignore[method-assign]
    if "rejoin" in guards:
        vars(faust_internals)["leave_and_rejoin"] = lambda app: None
    if "topics" in guards:
        vars(process)["check_topics"] = unchecked


async def main(options: ToyOptions) -> int:
    switch_off(options.off)
    store = ToyStore(options.store, positions="positions" not in options.off, epochs="epochs" not in options.off)
    stage = Stage(
        "toy",
        reads="remember.requests",
        sends=("remember.texts",),
        run=ToyStage(options).run,
        retry=RetryPolicy(backoff=timedelta(milliseconds=50), deadline=timedelta(seconds=30)),
        turn_records=8,
        slots=16,
        fenced=options.fenced,
    )
    async with KafkaLog(options.bootstrap, prefix=options.prefix, deadline=timedelta(seconds=5)) as log:
        return await run_worker(
            [stage],
            store,
            log=log,
            clock=SystemClock(),
            raise_epochs=store.raise_epochs,
            breakers=Breakers(),
            metrics=Metrics(),
            options=WorkerOptions(
                bootstrap=options.bootstrap,
                prefix=options.prefix,
                group="toy",
                session_timeout=timedelta(seconds=options.session_s),
                health_port=options.port,
                grace=timedelta(seconds=options.grace_s),
                stall_exit=timedelta(seconds=options.stall_exit_s),
                stall_alarm=timedelta(seconds=min(60.0, options.stall_exit_s)),
            ),
        )


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    sys.exit(asyncio.run(main(ToyOptions(**{**given, "off": tuple(given["off"])}))))
