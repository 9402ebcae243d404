"""The watchdog: says when a worker stands still, and ends it when only a fresh process can help.

Standing still for a reason that is known elsewhere (a service away, a hole in the numbers) is no reason to end: a new process would stand still too.
What remains are lost wake-ups in the host and in clients, seen in the wild as partitions that stop after hours (faust-streaming #175, #640).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import structlog

from agents.kafka_host import faust_internals
from agents.kafka_host.app import KafkaHost, StageHost
from topics.errors import Outage, Retryable
from topics.log import Log

LOOK_EVERY_S = 2.0
ASK_EVERY_S = 30.0
"""How often the log is asked for its ends."""
ALARM_EVERY_S = 60.0

_log = structlog.get_logger()


class Stalled(Exception):
    """Nothing moves and nothing is known to be away: start the process anew."""


class Watchdog:
    """Runs beside the host; `watch` ends only by raising."""

    def __init__(self, host: KafkaHost, log: Log, monotonic: Callable[[], float]) -> None:
        self._host = host
        self._sink = log
        self._monotonic = monotonic
        self._unread: dict[tuple[str, int], tuple[int, float]] = {}
        """(topic, partition) with records that nobody takes: where it stands, and since when."""
        self._alarmed_at = float("-inf")
        self._asked_at = float("-inf")

    async def watch(self) -> None:
        """Raises Stalled, or what broke the host."""
        while True:
            if self._host.broken is not None:
                raise self._host.broken
            if (reason := faust_internals.crash_reason(self._host.app)) is not None:
                raise reason
            now = self._monotonic()
            if now - self._asked_at >= ASK_EVERY_S:
                self._asked_at = now
                await self._ask()
            self.judge(self._oldest(now))
            await asyncio.sleep(LOOK_EVERY_S)

    def judge(self, age: float) -> None:
        """Raises Stalled or alarms, by the age in seconds of the oldest record that is not handled."""
        options, away = self._host.options, self._host.breakers.away()
        if age < options.stall_alarm.total_seconds():
            return
        excused = bool(away) or self._host.holes.any()
        now = self._monotonic()
        if now - self._alarmed_at >= ALARM_EVERY_S:
            self._alarmed_at = now
            _log.error("worker.stalled", oldest_pending_s=round(age), services_away=away, holes=self._host.holes.any())
        if age >= options.stall_exit.total_seconds() and not excused:
            raise Stalled(f"a record waits for {age:.0f} s and no service is known to be away")

    def _oldest(self, now: float) -> float:
        pending = max((host.oldest_pending_age() for host in self._host.stages.values()), default=0.0)
        unread = max((now - since for _, since in self._unread.values()), default=0.0)
        since = self._host.unassigned_since
        return max(pending, unread, now - since if since is not None else 0.0)

    async def _ask(self) -> None:
        """Notes which partitions have records that are not even delivered; those in work are seen by their age."""
        unread: dict[tuple[str, int], tuple[int, float]] = {}
        try:
            for topic, host in self._host.stages.items():
                ends = await self._sink.ends(host.stage.reads)
                if not host.pending:
                    unread |= self._undelivered(topic, host, ends)
        except Outage as error:
            self._host.breakers.trip(error)
        except Retryable:
            pass
        else:
            self._unread = unread
            if (kafka := self._host.breakers.of("kafka")).state != "closed":
                kafka.reset()

    def _undelivered(
        self, topic: str, host: StageHost, ends: Mapping[int, int]
    ) -> dict[tuple[str, int], tuple[int, float]]:
        committed = faust_internals.committed_offsets(self._host.app)
        found: dict[tuple[str, int], tuple[int, float]] = {}
        for tp in self._host.assignment:
            position = max(committed.get(tp, 0), host.next_offsets.get(tp, 0))
            # A position of 0 may be that of a group that never committed on a topic whose beginning has expired.
            if tp.topic == topic and position and ends.get(tp.partition, 0) > position:
                seen = self._unread.get((topic, tp.partition))
                since = seen[1] if seen is not None and seen[0] == position else self._monotonic()
                found[topic, tp.partition] = (position, since)
        return found
