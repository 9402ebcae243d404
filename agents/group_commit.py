"""Group commit: plans of many lanes share one transaction; a plan that cannot be written fails alone.

As databases do with their logs: while one group is being written, the next one gathers. Load makes the groups, no timer does. It serves
whatever is cheaper together: write transactions, reads of candidates, batches for the index.

    lane ─ submit ─┐
    lane ─ submit ─┼─ waiting ─► group (≤ cap, one plan of a key, in key order) ─► write ─► an outcome for each
    lane ─ submit ─┘

What `write` raises decides. Outage: the group is repeated with back-off for as long as it takes. Another Retryable (a deadlock): a few
times. Then, and at once with anything else, the group is halved until the plan at fault stands alone and fails. Callers wait meanwhile;
whoever is cancelled falls out of the group before its next try. `write` must be safe to repeat: a commit whose answer was lost is written again.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar

from topics.errors import Outage, Retryable

Plan = TypeVar("Plan")
Outcome = TypeVar("Outcome")


RETRY_AFTER_CAP = timedelta(seconds=30)
"""The longest wait that another side may ask of a group."""


class CommitterBroken(Retryable):
    """The group ended without an answer: whether the plan is durable is unknown. Submit it again."""

    code = "committer_broken"


class CommitterClosed(Outage):
    """The process is ending: submit nothing more. An outage, so that no record is given up for it."""

    code = "committer_closed"


class CommitObserver(Protocol):
    """Watches a committer: metrics, breakers. Nothing it does changes what is written."""

    def committed(self, plans: int, seconds: float) -> None:
        """One group is durable, after `seconds` in its last try."""
        ...

    def repeated(self, error: Retryable) -> None:
        """A group will be tried again; with an Outage its service is away."""
        ...

    def split(self) -> None:
        """A group was halved in search of a bad plan."""
        ...


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits between tries: doubled from `first` up to `cap`, each shortened by up to half at random so that processes do not march in step."""

    first: timedelta = timedelta(milliseconds=50)
    cap: timedelta = timedelta(seconds=5)

    def seconds(self, tries: int) -> float:
        """The wait after the `tries`-th failed try, counted from 1."""
        longest = min(self.cap.total_seconds(), self.first.total_seconds() * 2.0 ** min(tries - 1, 30))
        return longest * random.uniform(0.5, 1.0)  # noqa: S311  spreading load needs no secrecy


class _Ticket(Generic[Plan, Outcome]):
    __slots__ = ("answer", "key", "plan")

    def __init__(self, plan: Plan, key: Any, answer: asyncio.Future[Outcome]) -> None:
        self.plan = plan
        self.key = key
        self.answer = answer


class GroupCommitter(Generic[Plan, Outcome]):
    """`await submit(plan)` answers once the plan's group is durable. One event loop; build one a kind of write and process."""

    def __init__(
        self,
        write: Callable[[Sequence[Plan]], Awaitable[Sequence[Outcome]]],
        *,
        key: Callable[[Plan], Any] | None = None,
        service: str = "",
        cap: int = 64,
        in_flight: int = 1,
        gather: timedelta = timedelta(0),
        deadline: timedelta | None = timedelta(seconds=15),
        tries: int = 6,
        backoff: Backoff | None = None,
        observers: Sequence[CommitObserver] = (),
    ) -> None:
        """`write`: gets up to `cap` plans, answers one outcome for each in the same order, or raises and has changed nothing that repeating
        would double.

        `key`: what two plans of one group must not share, and what orders a group so that two cannot deadlock; a dataset. None: no such rule.
        `gather`: a wait before each group, for work that nobody waits for. `deadline`: of one try; past it the service counts as away (Outage).
        `tries`: of a group that fails with a Retryable which is no Outage, before it is halved.
        """
        self._write = write
        self._key = key
        self._service = service or "store"
        self._cap = cap
        self._in_flight = in_flight
        self._gather = gather.total_seconds()
        self._deadline = deadline.total_seconds() if deadline is not None else None
        self._tries = tries
        self._backoff = backoff or Backoff()
        self._observers = tuple(observers)
        self._waiting: deque[_Ticket[Plan, Outcome]] = deque()
        self._busy: set[Any] = set()
        self._writers: set[asyncio.Task[None]] = set()
        self._closed = False

    @property
    def waiting(self) -> int:
        """Plans not yet in a group."""
        return len(self._waiting)

    async def submit(self, plan: Plan) -> Outcome:
        """The outcome of the plan, once durable.

        Raises what `write` raised for this plan alone, CommitterBroken when that is unknown, CommitterClosed after `close`. A caller that is
        cancelled takes its plan back only if its group is not being written.
        """
        if self._closed:
            raise CommitterClosed(self._service, "the committer is closed: the process is ending")
        answer: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Ticket(plan, self._key(plan) if self._key is not None else None, answer))
        self._wake()
        return await answer

    async def close(self) -> None:
        """Refuses new plans, waits until those submitted are settled. For a fast end cancel the submitters first."""
        self._closed = True
        while self._writers:
            await asyncio.wait(tuple(self._writers))

    def _wake(self) -> None:
        if len(self._writers) < self._in_flight:
            writer = asyncio.create_task(self._drain())
            self._writers.add(writer)
            writer.add_done_callback(self._ended)

    def _ended(self, writer: asyncio.Task[None]) -> None:
        """A writer that was cancelled or broke has told its group; what still waits needs another one, unless for a key in flight."""
        self._writers.discard(writer)
        if not writer.cancelled():
            writer.exception()  # told to the callers of its group
        if any(not ticket.answer.done() and ticket.key not in self._busy for ticket in self._waiting):
            self._wake()

    async def _drain(self) -> None:
        while self._waiting:
            await asyncio.sleep(self._gather)  # even 0 lets everything that is ready in this tick join
            group = self._next_group()
            if not group:
                return  # all that waits is cancelled, or of keys in flight: their writer goes on with them
            keys = {ticket.key for ticket in group} if self._key is not None else set()
            self._busy |= keys
            try:
                await self._settle(group)
            except BaseException as cause:
                _abandon(group, cause)
                raise
            finally:
                self._busy -= keys

    def _next_group(self) -> list[_Ticket[Plan, Outcome]]:
        """A second plan of a key waits its turn: in one transaction both would see the state before either."""
        group: list[_Ticket[Plan, Outcome]] = []
        held: list[_Ticket[Plan, Outcome]] = []
        keys = set(self._busy)
        while self._waiting and len(group) < self._cap:
            ticket = self._waiting.popleft()
            if ticket.answer.done():
                continue
            if self._key is not None:
                if ticket.key in keys:
                    held.append(ticket)
                    continue
                keys.add(ticket.key)
            group.append(ticket)
        self._waiting.extendleft(reversed(held))
        if self._key is not None:
            group.sort(key=lambda ticket: ticket.key)
        return group

    async def _settle(self, group: list[_Ticket[Plan, Outcome]]) -> None:
        """Returns when every plan of the group has its answer."""
        clock = asyncio.get_running_loop().time
        failed = counted = 0
        while group:
            begun = clock()
            try:
                outcomes = await self._try([ticket.plan for ticket in group])
            except Retryable as error:
                failed += 1
                counted += not isinstance(error, Outage)
                if counted >= self._tries:
                    return await self._isolate(group, error)
                for observer in self._observers:
                    observer.repeated(error)
                asked = min(error.retry_after or timedelta(0), RETRY_AFTER_CAP).total_seconds()
                await asyncio.sleep(max(self._backoff.seconds(failed), asked))
                group = [ticket for ticket in group if not ticket.answer.done()]
            except Exception as error:  # noqa: BLE001  whatever it is, it belongs to one of the callers
                return await self._isolate(group, error)
            else:
                for observer in self._observers:
                    observer.committed(len(group), clock() - begun)
                for ticket, outcome in zip(group, outcomes, strict=True):
                    if not ticket.answer.done():
                        ticket.answer.set_result(outcome)
                return None
        return None

    async def _try(self, plans: Sequence[Plan]) -> Sequence[Outcome]:
        try:
            async with asyncio.timeout(self._deadline):
                outcomes = await self._write(plans)
        except TimeoutError as error:
            raise Outage(
                self._service, f"a group of {len(plans)} plans had no answer within {self._deadline} s"
            ) from error
        if len(outcomes) != len(plans):
            raise RuntimeError(f"a write of {len(plans)} plans answered {len(outcomes)} outcomes")
        return outcomes

    async def _isolate(self, group: list[_Ticket[Plan, Outcome]], error: Exception) -> None:
        """Halving finds one bad plan of 64 in 12 writes; one by one would need 64."""
        if len(group) == 1:
            if not group[0].answer.done():
                group[0].answer.set_exception(error)
            return
        for observer in self._observers:
            observer.split()
        half = len(group) // 2
        await self._settle(group[:half])
        await self._settle(group[half:])


def _abandon(group: Sequence[_Ticket[Any, Any]], cause: BaseException) -> None:
    """Not with a bare CancelledError: the caller's lane would end as if it had been cancelled itself, its records open for ever."""
    for ticket in group:
        if not ticket.answer.done():
            error = CommitterBroken(
                "the group ended without an answer; whether it is durable is unknown: submit it again"
            )
            error.__cause__ = cause
            ticket.answer.set_exception(error)
