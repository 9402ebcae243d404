"""Stages as Faust agents: each delivered record becomes a KafkaRecord in its stage's lanes, each turn is run by the stage's TurnRunner.

    Faust actor of a partition ─► Lanes ─► TurnRunner ─► stage
                                   slots shared by all actors of a stage

An exception never leaves an agent: Faust would acknowledge the record and lose it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import faust
import structlog
from faust.types import TP, EventT

from agents.breaker import Breakers
from agents.contract import AnyStage
from agents.kafka_host import faust_internals
from agents.kafka_host.epochs import Epochs, RaiseEpochs, partition_id
from agents.kafka_host.options import WorkerOptions
from agents.lanes import Lanes, Lease
from agents.metrics import Metrics, StageMetrics
from agents.sending import place_of
from agents.turns import Holes, TurnRunner
from graph.model import Fence
from topics.clock import Clock
from topics.envelope import Incoming
from topics.log import Log

REJOIN_AFTER_S = 3.0
"""A worker that lost its partition hears of it with the next heartbeats; only who hears nothing has to ask again."""

_log = structlog.get_logger()


class KafkaRecord:
    """One record as Faust handed it out."""

    __slots__ = ("_app", "_event", "incoming", "key", "offset", "partition")

    def __init__(self, app: faust.App, event: EventT[Any], topic: str) -> None:
        message = event.message
        self._app = app
        self._event = event
        self.partition: TP = message.tp
        self.key: bytes | None = message.key
        self.offset: int = message.offset
        self.incoming = Incoming(
            topic=topic,
            partition=message.partition,
            offset=message.offset,
            key=message.key,
            value=message.value,
            headers=_headers(message.headers),
            timestamp=datetime.fromtimestamp(message.timestamp, UTC) if message.timestamp else None,
        )

    def ack(self) -> None:
        faust_internals.acknowledge(self._event)

    def forget(self) -> None:
        faust_internals.forget(self._app, self._event.message)

    def is_stale(self) -> bool:
        return faust_internals.is_stale(self._app, self._event.message)


def _headers(headers: Any) -> tuple[tuple[str, bytes], ...]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    return tuple((str(name), bytes(value or b"")) for name, value in pairs)


class StageHost:
    """One stage in this process: its runner, its slots and the lanes of each of its partitions."""

    def __init__(self, stage: AnyStage, runner: TurnRunner[Any], metrics: StageMetrics) -> None:
        self.stage = stage
        self.metrics = metrics
        self.lanes: set[Lanes[KafkaRecord]] = set()
        self.next_offsets: dict[TP, int] = {}
        """After the highest offset taken in the life of this process."""
        self._runner = runner
        self._slots = asyncio.Semaphore(stage.slots)

    async def handle(self, records: Sequence[KafkaRecord], lease: Lease) -> None:
        def widen() -> list[Incoming]:
            return [record.incoming for record in lease.widen()]

        await self._runner.run([record.incoming for record in records], lease, widen)

    def open_lanes(
        self, max_pending: int, on_lost: Callable[[Hashable], None], on_broken: Callable[[BaseException], None]
    ) -> Lanes[KafkaRecord]:
        lanes = Lanes(
            self.handle,
            slots=self._slots,
            turn_records=self.stage.turn_records,
            max_pending=max_pending,
            on_lost=on_lost,
            on_broken=on_broken,
        )
        self.lanes.add(lanes)
        return lanes

    def note(self, record: KafkaRecord) -> None:
        if record.offset < self.next_offsets.get(record.partition, 0):
            self.metrics.redelivered.inc()
        else:
            self.next_offsets[record.partition] = record.offset + 1

    @property
    def pending(self) -> int:
        return sum(lanes.pending for lanes in self.lanes)

    def is_full(self) -> bool:
        """At least one partition is not read because too many of its records are open."""
        return any(lanes.is_full() for lanes in self.lanes)

    def oldest_pending_age(self) -> float:
        return max((lanes.oldest_pending_age() for lanes in self.lanes), default=0.0)


class KafkaHost(faust_internals.RebalanceHooks):
    """The stages of one worker process on one Faust app. Build it in the running event loop."""

    def __init__(
        self,
        stages: Sequence[AnyStage],
        deps: Any,
        *,
        log: Log,
        clock: Clock,
        raise_epochs: RaiseEpochs,
        breakers: Breakers,
        metrics: Metrics,
        options: WorkerOptions,
        datadir: str,
    ) -> None:
        self.options = options
        self.breakers = breakers
        self.holes = Holes()
        self.epochs = Epochs(raise_epochs, breakers)
        self.assignment: frozenset[TP] = frozenset()
        """Empty before the first assignment and during each rebalance."""
        self.unassigned_since: float | None = time.monotonic()
        """Since when the group has not told what is ours; None once it has, be it nothing."""
        self.broken: BaseException | None = None
        """What no lane can go on from: the process must end."""
        self._log_id = log.log_id
        self._rejoining: asyncio.TimerHandle | None = None
        self.stages: dict[str, StageHost] = {}
        """By the topic's name on the broker."""
        self.app = faust_internals.build_app(
            options.group_id, options.bootstrap, datadir, options.session_timeout.total_seconds(), self
        )
        for stage in stages:
            stage_metrics = StageMetrics(metrics, stage.name)
            runner = TurnRunner(
                stage,
                deps,
                log=log,
                clock=clock,
                breakers=breakers,
                holes=self.holes,
                metrics=stage_metrics,
                fence=self._fence,
            )
            self._add(StageHost(stage, runner, stage_metrics))

    def _add(self, host: StageHost) -> None:
        topic = self.options.prefix + host.stage.reads
        self.stages[topic] = host

        async def actor(stream: Any) -> None:
            lanes = host.open_lanes(self.options.max_pending, self._lost, self._broke)
            try:
                async for event in stream.noack().events():
                    record = KafkaRecord(self.app, event, host.stage.reads)
                    host.note(record)
                    lanes.take(record)
                    await lanes.room()
            except Exception as error:  # noqa: BLE001  see the head of this file
                self._broke(error)
                await asyncio.Event().wait()
            finally:
                await lanes.close()
                host.lanes.discard(lanes)

        faust_internals.register_agent(self.app, topic, host.stage.name, actor)

    def revoked(self) -> None:
        self.assignment = frozenset()
        self.unassigned_since = time.monotonic()
        self.epochs.forget()

    def assigned(self, partitions: set[TP]) -> None:
        self.assignment = frozenset(tp for tp in partitions if tp.topic in self.stages)
        self.unassigned_since = None
        fenced = [self._id_of(tp) for tp in self.assignment if self.stages[tp.topic].stage.fenced]
        self.epochs.claim(fenced)
        _log.info("worker.assigned", partitions=len(self.assignment), generation=faust_internals.generation(self.app))

    def _id_of(self, tp: TP) -> str:
        plain = self.stages[tp.topic].stage.reads
        return partition_id(self._log_id, self.options.group, plain, tp.partition)

    def _fence(self, incoming: Incoming) -> Fence | None:
        return self.epochs.fence(partition_id(self._log_id, self.options.group, incoming.topic, incoming.partition))

    def _lost(self, partition: Hashable) -> None:
        """A lane gave the partition up, yet the group still says that it is ours: join anew, else its records never come again."""
        if self._rejoining is not None:
            return
        seen = faust_internals.generation(self.app)

        def rejoin() -> None:
            self._rejoining = None
            if faust_internals.generation(self.app) == seen and self.assignment:
                _log.warning("worker.rejoining", generation=seen, partition=str(partition))
                faust_internals.leave_and_rejoin(self.app)

        self._rejoining = asyncio.get_running_loop().call_later(REJOIN_AFTER_S, rejoin)

    def _broke(self, error: BaseException) -> None:
        if self.broken is None:
            _log.critical("worker.broken", error=place_of(error))
            self.broken = error
