"""Sends what a turn yields: one append for all of it, repeated until it is durable, and a dead letter for what the log refuses."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import structlog

from agents.breaker import Breaker, Breakers
from agents.contract import GaveUp
from agents.group_commit import Backoff
from agents.lanes import Abandoned, Lease
from agents.publication import Publisher, Work
from topics.clock import Clock
from topics.envelope import Outgoing
from topics.errors import Outage, Permanent, Retryable
from topics.log import Log

ANNOUNCE_AFTER_S = 5.0
"""A stage that takes longer says that it has started; for shorter ones that would double the run log."""
ALARM_BACKOFF = Backoff(first=timedelta(seconds=1), cap=timedelta(seconds=10))
"""Between tries of what only a person can mend."""
LAST_RESORT_AFTER = 3
"""Tries after which a send is dropped that fails for a reason nobody expected; one that is refused for good is dropped at once."""
SEND_BACKOFF = Backoff(first=timedelta(milliseconds=200), cap=timedelta(seconds=5))

_log = structlog.get_logger()

Refuse = Callable[[Work, Permanent, Lease], Awaitable[GaveUp]]


class TakeApart(Exception):
    """The turn cannot be handled as a whole: run its records one by one."""


class Bug(Permanent):
    """The stage raised what no stage should: a fault of ours. Type and place only: the words of a stranger error may hold a user's text."""

    code = "bug"


class Sender:
    """Of one stage. `needs` gains the log's breaker once the log was away: new turns then wait for it too."""

    def __init__(self, stage: str, log: Log, clock: Clock, breakers: Breakers, needs: set[Breaker]) -> None:
        self._stage = stage
        self._sink = log
        self._clock = clock
        self._breakers = breakers
        self._needs = needs
        self._publisher = Publisher(stage, log.log_id)

    async def publish(self, works: Sequence[Work], lease: Lease, started_at: datetime, refuse: Refuse) -> None:
        """Everything of these records in one append; durable on return. Raises TakeApart for several of which the log refuses some."""
        try:
            await self._append(self._outgoing(works, started_at), lease)
            return
        except (Abandoned, asyncio.CancelledError):
            raise
        except Exception as error:
            if len(works) > 1:
                raise TakeApart from error
            refused = error if isinstance(error, Permanent) else Bug(place_of(error))
        _log.error(
            "turn.refused_by_log", stage=self._stage, record=works[0].where, error_code=refused.code, error=str(refused)
        )
        await self._publish_refused(works[0], refused, lease, started_at, refuse)

    async def announce(self, works: Sequence[Work], started_at: datetime) -> None:
        """Tells the run log that these are in work."""
        now = self._clock.now()
        outgoing = [each for work in works for each in self._publisher.started(work, started_at, now)]
        try:
            if outgoing:
                await self._sink.append(outgoing)
        except Exception as error:  # noqa: BLE001  a courtesy; the end of the stage will be told for certain
            _log.warning("turn.start_not_told", stage=self._stage, error_type=type(error).__name__)

    async def _publish_refused(
        self, work: Work, error: Permanent, lease: Lease, started_at: datetime, refuse: Refuse
    ) -> None:
        """A record whose sends the log refuses has failed for good, and at least its dead letter must be kept.

        In this order: all as the stage owes it; the dead letter without the bytes; last, each send by itself, without those that
        the log refuses: a lane must not stand still for ever for what can never be sent.
        """
        tries = 0
        while True:
            work.result = await refuse(work, error, lease)
            whole = self._outgoing([work], started_at)
            letter = self._publisher.dead_letter(work, error, self._clock.now(), with_value=False)
            slim = [letter if each.topic == letter.topic else each for each in whole]
            refusal: Exception | None = None
            for outgoing in (whole, slim):
                if (refusal := await self._refusal(work, outgoing, lease)) is None:
                    return
            # What is not refused for good may be a passing fault, and a dropped send may leave a hole: a few tries first.
            hopeless = isinstance(refusal, Permanent) or tries + 1 >= LAST_RESORT_AFTER
            if hopeless and await self._last_resort(work, work.result, letter, lease, started_at):
                return
            tries += 1
            await lease.pause(ALARM_BACKOFF.seconds(tries))

    async def _last_resort(
        self, work: Work, result: GaveUp, letter: Outgoing, lease: Lease, started_at: datetime
    ) -> bool:
        """The sends that the log takes, then the dead letter and the run event alone. False if even these are refused."""
        for outgoing in result.sends:
            if await self._refusal(work, [outgoing], lease) is not None:
                _log.error("turn.send_dropped", stage=self._stage, record=work.where, topic=outgoing.topic)
        note = result.note
        if note is not None:
            note = replace(note, fact_ids=(), closed_fact_ids=(), entity_ids=())
        work.result = replace(result, sends=(), note=note)
        rest = [letter if each.topic == letter.topic else each for each in self._outgoing([work], started_at)]
        return await self._refusal(work, rest, lease) is None

    async def _refusal(self, work: Work, outgoing: Sequence[Outgoing], lease: Lease) -> Exception | None:
        """None once all is durable, else why the log does not take it."""
        try:
            await self._append(outgoing, lease)
        except (Abandoned, asyncio.CancelledError):
            raise
        except Exception as failure:  # noqa: BLE001  what is tried next is smaller, and the least is tried for ever
            _log.critical("dead_letter.refused_by_log", stage=self._stage, record=work.where, error=place_of(failure))
            return failure
        return None

    def _outgoing(self, works: Sequence[Work], started_at: datetime) -> list[Outgoing]:
        now = self._clock.now()
        return [outgoing for work in works for outgoing in self._publisher.finished(work, started_at, now)]

    async def _append(self, outgoing: Sequence[Outgoing], lease: Lease) -> None:
        """Repeated without limit while the partition is ours: the effect is durable, and what follows from it must be too."""
        if not outgoing:
            return
        tries = 0
        while True:
            try:
                await self._sink.append(outgoing)
            except Outage as error:
                self._needs.add(self._breakers.trip(error))
            except Retryable as error:
                _log.warning("turn.send_repeated", stage=self._stage, error_code=error.code, error=str(error))
            except asyncio.CancelledError:
                if was_cancelled():
                    raise
                _log.warning("turn.send_repeated", stage=self._stage, error_code="cancelled")
            else:
                if tries:
                    self._breakers.of("kafka").reset()
                return
            tries += 1
            await lease.pause(SEND_BACKOFF.seconds(tries))


class Announcement:
    """Runs `tell` if it has not ended within ANNOUNCE_AFTER_S. A timer costs far less than a task a turn."""

    def __init__(self, tell: Callable[[], Any]) -> None:
        self._tell = tell
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(ANNOUNCE_AFTER_S, self._begin)

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._tell())

    async def end(self) -> None:
        self._timer.cancel()
        if self._task is not None:
            await self._task


def was_cancelled() -> bool:
    """Was this task asked to end? If not, a CancelledError comes from inside a client and must not end the lane silently."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def place_of(error: BaseException) -> str:
    """Type and place of an error, without its words."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename.rsplit('/', 1)[-1]}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
