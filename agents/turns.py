"""Runs the turns of one stage, whatever host delivers them: decode, run with a deadline, retry in place, give up, publish.

    turn ─► decode ─► [wait for the epoch] ─► stage.run ─► results ─► ONE append: sends, dead letters, run events ─► acknowledged by the lane
                              ▲                   │
                              └── Outage          │  breaker; waits without limit, no attempt counted
                              └── Hole            │  alarm; waits without limit; all that comes in the lane joins the turn
                              └── Retryable ◄─────┤  back-off with jitter, `retry_after` obeyed up to a cap; counted
                                                  ├─ Permanent, the last attempt, a bug: of several records ─► each by itself, in order
                                                  │                                     of one ─► stage.give_up, dead letter, run failed
                                                  └─ Fenced ─► abandoned: nothing sent, nothing acknowledged

A record leaves a turn only by what is durable on the log, or by being abandoned. All waiting is done through the lease: without a slot, and
only while the partition is ours.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, NoReturn, TypeVar

import structlog

from agents.breaker import Breaker, Breakers
from agents.contract import Delivery, Fenced, GaveUp, Hole, Result, Stage, Turn
from agents.group_commit import Backoff
from agents.lanes import Abandoned, Lease
from agents.metrics import StageMetrics
from agents.publication import Work
from agents.sending import ALARM_BACKOFF, Announcement, Bug, Sender, TakeApart, place_of, was_cancelled
from graph.model import Fence
from topics.clock import Clock
from topics.codec import decode
from topics.envelope import Incoming
from topics.errors import Outage, Permanent, Retryable, Undecodable
from topics.log import Log

D = TypeVar("D")
Widen = Callable[[], Sequence[Incoming]]

RETRY_AFTER_CAP = timedelta(minutes=1)
"""The longest wait that another side may ask for; the breaker of an outage has its own."""
BUG_ATTEMPTS = 3
"""An error that nobody expected seldom goes away by itself, but a race may."""
FENCE_POLL_S = 0.02

_log = structlog.get_logger()


class Exhausted(Permanent):
    """The last allowed attempt failed too. The message has the code and the words of its error."""

    code = "exhausted"


class _Failed(Exception):
    """A turn is not to be tried again, for `error`, after `attempts` counted ones."""

    def __init__(self, error: Permanent, attempts: int) -> None:
        super().__init__()
        self.error = error
        self.attempts = attempts


class Holes:
    """Lanes that stand still because a number before them is missing. The process is healthy, its data is not."""

    def __init__(self) -> None:
        self._by_stage: dict[str, set[bytes | None]] = {}

    def add(self, stage: str, key: bytes | None) -> None:
        self._by_stage.setdefault(stage, set()).add(key)

    def counts(self) -> dict[str, int]:
        """Lanes by stage, of the stages that have any."""
        return {stage: len(keys) for stage, keys in sorted(self._by_stage.items()) if keys}

    def discard(self, stage: str, key: bytes | None) -> None:
        self._by_stage.get(stage, set()).discard(key)

    def count(self, stage: str) -> int:
        return len(self._by_stage.get(stage, ()))

    def any(self) -> bool:
        return any(self._by_stage.values())


class TurnRunner(Generic[D]):
    """Runs turns of one stage; one instance for all its lanes in a process."""

    def __init__(
        self,
        stage: Stage[Any, D],
        deps: D,
        *,
        log: Log,
        clock: Clock,
        breakers: Breakers,
        holes: Holes,
        metrics: StageMetrics,
        fence: Callable[[Incoming], Fence | None],
    ) -> None:
        """`fence`: of the record's partition in the present assignment; None while it is not known, the turn then waits."""
        self._stage = stage
        self._deps = deps
        self._clock = clock
        self._breakers = breakers
        self._holes = holes
        self._metrics = metrics
        self._fence = fence
        self._needs: set[Breaker] = set()
        """Of the services that have failed this stage before: nobody has to declare them."""
        self._sender = Sender(stage.name, log, clock, breakers, self._needs)
        self._deadline_s = stage.retry.deadline.total_seconds()
        self._backoff = Backoff(stage.retry.backoff, stage.retry.backoff_cap)

    async def run(self, incomings: Sequence[Incoming], lease: Lease, widen: Widen = tuple) -> None:
        """Handles the records of one lane, in order; on return all is durable. Raises Abandoned when they will be delivered again.

        `widen` adds what waits in the lane to the turn and gives it: behind a hole the missing record may be among it.
        """
        begun, started_at = time.monotonic(), self._clock.now()
        works = [self._open(incoming) for incoming in incomings]
        announcement = Announcement(lambda: self._sender.announce(works, started_at))
        try:
            await self._whole(works, lease, widen, started_at, announcement)
        except Abandoned:
            self._metrics.abandoned.inc(len(works))
            raise
        finally:
            self._holes.discard(self._stage.name, works[0].incoming.key)
            await announcement.end()
        self._measure(works, time.monotonic() - begun)

    def _open(self, incoming: Incoming) -> Work:
        try:
            return Work(incoming, Delivery(decode(incoming), incoming))
        except Undecodable as error:
            return Work(incoming, result=GaveUp(error))
        except Exception as error:  # noqa: BLE001  whatever a stranger's bytes do to a validator, they end no worker
            _log.error("record.decode_bug", stage=self._stage.name, error=place_of(error))
            return Work(incoming, result=GaveUp(Undecodable(f"reading the record failed: {type(error).__name__}")))

    async def _whole(
        self, works: list[Work], lease: Lease, widen: Widen, started_at: datetime, announcement: Announcement
    ) -> None:
        try:
            await self._handle_widening(works, lease, widen)
            await announcement.end()  # "started" goes out before the end is told
            await self._sender.publish(works, lease, started_at, self._refuse)
        except TakeApart:
            self._metrics.retried("split")
            await self._apart(works, lease, widen, started_at)

    async def _handle_widening(self, works: list[Work], lease: Lease, widen: Widen) -> None:
        """All together. `works` grows while a number is missing."""
        holes = 0
        while True:
            try:
                await self._handle([work for work in works if work.delivery is not None], lease)
            except Hole as error:
                holes += 1
                await self._wait_at_hole(works, error, holes, lease, widen)
            else:
                return self._holes.discard(self._stage.name, works[0].incoming.key)

    async def _apart(self, works: list[Work], lease: Lease, widen: Widen, started_at: datetime) -> None:
        """Each by itself, in order. One that stands before a hole lets those behind it try: the missing record may be among them."""
        holes, left = 0, list(range(len(works)))
        while left:
            waiting: list[int] = []
            hole: Hole | None = None
            for place, number in enumerate(left):
                work = works[number]
                if lease.is_lost():
                    raise Abandoned
                try:
                    await self._handle([work] if work.delivery is not None else [], lease)
                except Hole as error:
                    hole = hole or error
                    waiting.append(number)
                    continue
                await self._sender.publish([work], lease, started_at, self._refuse)
                lease.finish(min([*waiting[:1], *left[place + 1 : place + 2]], default=len(works)))
            if hole is not None and len(waiting) == len(left):
                holes += 1
                known = len(works)
                await self._wait_at_hole(works, hole, holes, lease, widen)
                waiting += range(known, len(works))
            left = waiting

    async def _wait_at_hole(self, works: list[Work], error: Hole, times: int, lease: Lease, widen: Widen) -> None:
        self._alarm_hole(works[0].incoming, len(works), error, times)
        await lease.pause(ALARM_BACKOFF.seconds(times))
        works += [self._open(incoming) for incoming in widen()]

    async def _handle(self, works: list[Work], lease: Lease) -> None:
        """Gives each its result. Raises TakeApart for several that fail together, Hole if a number before them is missing."""
        if not works:
            return
        turn = await self._turn(works, lease)
        try:
            results = await self._until_settled(turn, lease)
        except _Failed as failure:
            if len(works) > 1:
                raise TakeApart from failure
            works[0].attempts = failure.attempts
            works[0].result = await self._give_up(turn, failure.error, lease)
            return
        for work, result in zip(works, results[0], strict=True):
            work.result, work.attempts = result, results[1]

    async def _until_settled(self, turn: Turn[Any], lease: Lease) -> tuple[Sequence[Result], int]:
        """The stage's results and the attempts they took. Raises _Failed when it is not to be tried again, Hole."""
        failed = bugs = 0
        while True:
            try:
                return await self._try(turn, lease), failed + 1
            except Fenced as error:
                self._abandon(turn, error)
            except Hole:
                raise
            except Outage:
                self._metrics.retried("outage")
                wait_s = 0.0  # the breaker knows how long
            except Retryable as error:
                failed += 1
                if failed >= self._stage.retry.attempts:
                    raise _Failed(Exhausted(f"{failed} attempts; the last: {error.code}: {error}"), failed) from error
                self._metrics.retried("retryable")
                wait_s = self._wait_s(error, failed)
            except Permanent as error:
                raise _Failed(error, failed + 1) from error
            except (Abandoned, asyncio.CancelledError):
                raise
            except Exception as error:
                failed, bugs = failed + 1, bugs + 1
                bug = self._bug(turn, error)
                if len(turn.deliveries) > 1 or bugs >= BUG_ATTEMPTS:
                    raise _Failed(bug, failed) from error
                self._metrics.retried("bug")
                wait_s = self._backoff.seconds(bugs)
            await lease.pause(wait_s)

    async def _turn(self, works: list[Work], lease: Lease) -> Turn[Any]:
        fence: Fence | None = Fence("", 0)
        if self._stage.fenced:
            while (fence := self._fence(works[0].incoming)) is None:
                await lease.pause(FENCE_POLL_S)
        assert fence is not None
        return Turn(works[0].key, fence, tuple(work.delivery for work in works if work.delivery is not None))

    async def _try(self, turn: Turn[Any], lease: Lease) -> Sequence[Result]:
        """One run of the stage, behind the breakers of the services it is known to need."""
        probes = await self._pass_breakers(lease)
        try:
            results = await self._run_stage(turn)
        except Outage as error:
            self._needs.add(self._breakers.trip(error))
            raise
        except (Abandoned, asyncio.CancelledError):
            raise
        except Exception:
            _reset(probes)
            raise
        finally:
            for breaker in probes:
                breaker.release()
        _reset(probes)
        return results

    async def _pass_breakers(self, lease: Lease) -> list[Breaker]:
        """Waits until every service this stage needs may be used; those for which this try is the probe."""
        probes: list[Breaker] = []
        for breaker in self._needs:
            if breaker.state == "closed":
                continue
            try:
                while not breaker.enter():
                    await lease.pause(breaker.wait_s())
            except BaseException:
                for probe in probes:
                    probe.release()
                raise
            probes.append(breaker)
        return probes

    async def _run_stage(self, turn: Turn[Any]) -> Sequence[Result]:
        try:
            async with asyncio.timeout(self._deadline_s):
                results = await self._stage.run(turn, self._deps)
        except TimeoutError as error:
            raise self._overdue() from error
        except asyncio.CancelledError as error:
            if was_cancelled():
                raise
            raise RuntimeError("something inside the stage was cancelled") from error
        if len(results) != len(turn.deliveries):
            raise RuntimeError(f"{self._stage.name} answered {len(results)} results for {len(turn.deliveries)} records")
        return results

    def _overdue(self) -> Retryable:
        message = f"{self._stage.name} had no answer within {self._deadline_s:g} s"
        away = self._breakers.away()
        # A committer waits for its service as long as it takes; that is an outage although it is the deadline that ends the try.
        return Outage(away[0], message) if away else Retryable(message)

    async def _give_up(self, turn: Turn[Any], error: Permanent, lease: Lease) -> GaveUp:
        """What the stage still owes for a record that failed for good. Tried without limit: its number must go on. Raises Hole."""
        if self._stage.give_up is None:
            return GaveUp(error)
        tries = bugs = 0
        tripped: set[Breaker] = set()
        while True:
            try:
                async with asyncio.timeout(self._deadline_s):
                    gave_up = await self._stage.give_up(turn, error, self._deps)
                _reset(tripped)
                return gave_up
            except Fenced as fenced:
                self._abandon(turn, fenced)
            except Hole:
                raise
            except (Retryable, TimeoutError) as failure:
                if isinstance(failure, Outage):
                    tripped.add(self._breakers.trip(failure))
            except Exception as failure:  # noqa: BLE001
                self._bug(turn, failure)
                bugs += 1
                if bugs >= BUG_ATTEMPTS:
                    return GaveUp(error)
            tries += 1
            await lease.pause(self._backoff.seconds(tries))

    async def _refuse(self, work: Work, error: Permanent, lease: Lease) -> GaveUp:
        """For a record whose sends the log does not take."""
        if work.delivery is None:
            return GaveUp(error)
        holes = 0
        while True:
            try:
                return await self._give_up(await self._turn([work], lease), error, lease)
            except (
                Hole
            ) as hole:  # only if the store lost what it had: its effect was there before its sends were refused
                holes += 1
                await self._wait_at_hole([work], hole, holes, lease, tuple)

    def _alarm_hole(self, first: Incoming, records: int, error: Hole, times: int) -> None:
        if times == 1 or times % 6 == 0:
            _log.error("lane.hole", times=times, error=str(error), **self._fields(first, records))
        self._metrics.retried("hole")
        self._holes.add(self._stage.name, first.key)

    def _abandon(self, turn: Turn[Any], error: Fenced) -> NoReturn:
        self._metrics.fenced.inc()
        _log.warning(
            "turn.fenced",
            epoch=turn.fence.epoch,
            error=str(error),
            **self._fields(turn.deliveries[0].incoming, len(turn.deliveries)),
        )
        raise Abandoned from error

    def _bug(self, turn: Turn[Any], error: Exception) -> Bug:
        place = place_of(error)
        _log.error("stage.bug", error=place, **self._fields(turn.deliveries[0].incoming, len(turn.deliveries)))
        return Bug(
            f"{self._stage.name} failed unexpectedly: {place}; this is a fault of the program: replay the record after an upgrade"
        )

    def _fields(self, first: Incoming, records: int) -> dict[str, Any]:
        place = {"topic": first.topic, "partition": first.partition, "offset": first.offset}
        return {"stage": self._stage.name, "records": records, **place}

    def _wait_s(self, error: Retryable, failed: int) -> float:
        asked = min(error.retry_after or timedelta(0), RETRY_AFTER_CAP).total_seconds()
        return max(asked, self._backoff.seconds(failed))

    def _measure(self, works: list[Work], seconds: float) -> None:
        self._metrics.turn_records.observe(len(works))
        self._metrics.turn_seconds.observe(seconds)
        now, done = self._clock.now(), 0
        for work in works:
            if isinstance(work.result, GaveUp):
                self._metrics.dead_lettered(work.result.error.code)
                _log.warning(
                    "record.dead_letter", stage=self._stage.name, record=work.where, error_code=work.result.error.code
                )
            else:
                done += 1
            if work.incoming.timestamp is not None:
                self._metrics.hop_seconds.observe(
                    max(0.0, (now - work.incoming.timestamp.astimezone(UTC)).total_seconds())
                )
        self._metrics.done.inc(done)


def _reset(breakers: Iterable[Breaker]) -> None:
    for breaker in breakers:
        breaker.reset()
