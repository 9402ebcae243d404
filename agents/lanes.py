"""Ordered lanes: many keys at once, one turn at a time per key, acknowledgement only as an unbroken prefix of a partition.

A host delivers records partition by partition, in order. A record joins the lane of its (partition, key). A lane hands its handler TURNS:
all records that wait, up to a limit; a turn that needs a record behind it may be widened by all that wait meanwhile. Lanes run side by side,
as many as there are slots; the slots are shared by all `Lanes` of a stage.

            taken ─►  partition 7:   A1  B1  A2  C1  A3          delivery order; acknowledged from the left while handled
                          lane A:    A1 ─ A2 ─ A3                one turn at a time
                          lane B:    B1
                          lane C:    C1

A partition can move to another worker while its records are in work. Such a record is STALE; whoever sees one gives the CLAIM on the
partition up. What is then at the head of the partition without a gap and already handled or in work stays valid: the host's rebalance waits
for it, and its acknowledgement still reaches the last commit. All other records are VOID: they are never acknowledged, since the
acknowledgement of an old delivery could skip records of the new one. The host is told to forget a void record at once, or, if it is in work,
when its turn ends: forgotten too early, a key would run twice at once; never forgotten, the rebalance would never end.

Nothing here knows Kafka. Delivery is at least once: the effects must be safe to repeat.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, Protocol, TypeVar

STALE_POLL_S = 0.1
"""How soon a pausing turn notices that its partition moved away: a rebalance waits for it."""


class Delivered(Protocol):
    """One record as a host hands it out."""

    @property
    def partition(self) -> Hashable: ...

    @property
    def key(self) -> bytes | None: ...

    @property
    def offset(self) -> int: ...

    def ack(self) -> None:
        """Handled for good, and so is all before it in its partition."""
        ...

    def forget(self) -> None:
        """Not handled and not to be waited for: it will be delivered again. May be called twice."""
        ...

    def is_stale(self) -> bool:
        """True once its partition is being taken away or has been assigned anew since this delivery."""
        ...


class Abandoned(Exception):
    """Raised by a handler: the turn ends without being handled, its partition is not ours any more."""


class Lease(Protocol):
    """What a handler holds while its turn runs."""

    def is_lost(self) -> bool:
        """The rest of the turn will be delivered again, here or elsewhere: begin nothing new."""
        ...

    def finish(self, count: int) -> None:
        """The first `count` records of the turn are handled, whatever becomes of the others."""
        ...

    def widen(self) -> Sequence[Any]:
        """Adds all that wait in the lane to the end of the turn, beyond the limit of a turn; what was added, in order.

        For a handler that cannot go on without a record that may wait behind its own. Nothing is added once the lease is lost.
        """
        ...

    async def pause(self, seconds: float) -> None:
        """Waits without holding a slot. Raises Abandoned as soon as the lease is lost."""
        ...


R = TypeVar("R", bound=Delivered)
Handler = Callable[[Sequence[R], Lease], Awaitable[None]]


class _Entry(Generic[R]):
    __slots__ = ("done", "record", "started", "taken_at", "void")

    def __init__(self, record: R, taken_at: float) -> None:
        self.record = record
        self.taken_at = taken_at
        self.started = False
        self.done = False
        self.void = False


class _Claim(Generic[R]):
    """A partition from its first record of an assignment until it is given up. All its entries are of that one assignment."""

    __slots__ = ("_open", "delivered", "lanes", "last")

    def __init__(self, first: R) -> None:
        self.delivered: deque[_Entry[R]] = deque()
        self.lanes: dict[bytes | None, deque[_Entry[R]]] = {}
        self.last = first
        self._open = True

    def is_open(self) -> bool:
        return self._open

    def end(self) -> None:
        """No record joins any more, no turn begins."""
        self._open = False
        self.lanes.clear()


class Lanes(Generic[R]):
    """All lanes of one actor. Use: `take` every record the host delivers, `await room()` after each, `close` at the end."""

    def __init__(
        self,
        handle: Handler[R],
        *,
        slots: asyncio.Semaphore,
        turn_records: int,
        max_pending: int,
        on_lost: Callable[[Hashable], None],
        on_broken: Callable[[BaseException], None],
    ) -> None:
        """`on_lost`: a partition was given up by a handler though the host still holds it; its records come again only after a new assignment.
        Called again for each further record of it.

        `on_broken`: the handler raised what it must not, or a lane has a bug: the partition cannot go on, end the process.
        """
        self._handle = handle
        self._slots = slots
        self._turn_records = turn_records
        self._max_pending = max_pending
        self._on_lost = on_lost
        self._on_broken = on_broken
        self._claims: dict[Hashable, _Claim[R]] = {}
        self._tasks: dict[tuple[Hashable, bytes | None], asyncio.Task[None]] = {}
        self._running: set[_Turn[R]] = set()
        self._pending = 0
        self._closing = False
        self._room = asyncio.Event()
        self._room.set()

    @property
    def pending(self) -> int:
        """Records taken and neither acknowledged nor void."""
        return self._pending

    def is_full(self) -> bool:
        """No record is read until one of those taken is acknowledged."""
        return self._pending >= self._max_pending

    def oldest_pending_age(self) -> float:
        """Seconds since the oldest open record was taken, void ones in work included since a rebalance waits for them; 0.0 if there is none."""
        times = [claim.delivered[0].taken_at for claim in self._claims.values() if claim.delivered]
        times += [turn.entries[0].taken_at for turn in self._running]
        return asyncio.get_running_loop().time() - min(times) if times else 0.0

    async def room(self) -> None:
        """Returns when fewer than `max_pending` records are pending. Take first, then wait: no record is ever held outside the books."""
        await self._room.wait()

    def take(self, record: R) -> None:
        """Books one delivered record. Must be called in delivery order."""
        if record.is_stale():
            return record.forget()
        claim = self._claims.get(record.partition)
        if claim is not None and claim.last.is_stale():
            # The new assignment has begun: whatever the old one left, its acknowledgements would skip records of this one.
            self._give_up(claim, keep_started=False)
            claim = None
        if claim is not None and not claim.is_open():
            record.forget()  # given up by a handler: what follows must not be acknowledged past it
            return self._on_lost(record.partition)
        if claim is None:
            claim = self._claims[record.partition] = _Claim(record)
        claim.last = record
        entry = _Entry(record, asyncio.get_running_loop().time())
        claim.delivered.append(entry)
        self._count(+1)
        lane = claim.lanes.get(record.key)
        if lane is not None:
            lane.append(entry)
            return None
        claim.lanes[record.key] = deque((entry,))
        self._start(claim, (record.partition, record.key))
        return None

    async def close(self) -> None:
        """Ends all lanes: everything open becomes void, turns in work are cancelled and waited for."""
        self._closing = True
        for claim in list(self._claims.values()):
            self._give_up(claim, keep_started=False, silently=True)
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _start(self, claim: _Claim[R], lane_id: tuple[Hashable, bytes | None]) -> None:
        before = self._tasks.get(lane_id)  # a run of the key from before it was given up, or one about to end
        task = asyncio.create_task(self._drain(claim, lane_id[1], before))
        self._tasks[lane_id] = task
        task.add_done_callback(lambda ended: self._ended(lane_id, ended))

    def _ended(self, lane_id: tuple[Hashable, bytes | None], task: asyncio.Task[None]) -> None:
        if self._tasks.get(lane_id) is task:
            del self._tasks[lane_id]
        if task.cancelled():
            if not self._closing:  # by whom else: its records would stay open for ever, silently
                self._on_broken(RuntimeError(f"the lane {lane_id} was cancelled from inside"))
        elif (error := task.exception()) is not None:
            self._on_broken(error)

    async def _drain(self, claim: _Claim[R], key: bytes | None, before: asyncio.Task[None] | None) -> None:
        if before is not None and not before.done():
            await asyncio.wait((before,))
        while claim.is_open() and (lane := claim.lanes[key]):
            seat = _Seat(self._slots)
            await seat.take()
            try:
                if not claim.is_open():
                    return
                if lane[0].record.is_stale():
                    self._give_up(claim, keep_started=True)
                    return
                entries = [lane.popleft() for _ in range(min(len(lane), self._turn_records))]
                await self._run(_Turn(entries, seat, claim, lane), claim)
            finally:
                seat.leave()
        if claim.is_open():
            del claim.lanes[key]

    async def _run(self, turn: _Turn[R], claim: _Claim[R]) -> None:
        for entry in turn.entries:
            entry.started = True
        self._running.add(turn)
        try:
            await self._handle([entry.record for entry in turn.entries], turn)
            turn.finish(len(turn.entries))
        except Abandoned:
            pass
        finally:
            self._running.discard(turn)
            self._settle(turn, claim)

    def _settle(self, turn: _Turn[R], claim: _Claim[R]) -> None:
        """Judges each record by itself: a rebalance can void the tail of a turn in work, and what stays open holds the whole group still."""
        unfinished = False
        for index, entry in enumerate(turn.entries):
            entry.started = False
            if entry.void:
                entry.record.forget()
            elif index < turn.finished:
                entry.done = True
            else:
                unfinished = True
        if unfinished:
            self._give_up(claim, keep_started=True)
        self._release(claim)

    def _release(self, claim: _Claim[R]) -> None:
        delivered, released = claim.delivered, 0
        while delivered and delivered[0].done:
            delivered.popleft().record.ack()
            released += 1
        self._count(-released)

    def _give_up(self, claim: _Claim[R], *, keep_started: bool, silently: bool = False) -> None:
        kept: deque[_Entry[R]] = deque()
        rest = claim.delivered
        while keep_started and rest and (rest[0].started or rest[0].done):
            kept.append(rest.popleft())
        claim.delivered = kept
        was_open = claim.is_open()
        claim.end()
        for entry in rest:
            entry.void = True
            if not entry.started:
                entry.record.forget()
        self._count(-len(rest))
        partition = claim.last.partition
        still_held = not claim.last.is_stale()
        if not still_held and not kept and self._claims.get(partition) is claim:
            del self._claims[partition]
        if was_open and still_held and not silently:
            self._on_lost(partition)

    def _count(self, change: int) -> None:
        self._pending += change
        if self.is_full():
            self._room.clear()
        else:
            self._room.set()


class _Seat:
    """A slot that is held or not; leaving twice is harmless."""

    __slots__ = ("_held", "_slots")

    def __init__(self, slots: asyncio.Semaphore) -> None:
        self._slots = slots
        self._held = False

    async def take(self) -> None:
        await self._slots.acquire()
        self._held = True

    def leave(self) -> None:
        if self._held:
            self._held = False
            self._slots.release()


class _Turn(Generic[R]):
    """A turn in work: the handler's Lease."""

    __slots__ = ("_claim", "_lane", "_seat", "entries", "finished")

    def __init__(self, entries: list[_Entry[R]], seat: _Seat, claim: _Claim[R], lane: deque[_Entry[R]]) -> None:
        self.entries = entries
        self.finished = 0
        self._seat = seat
        self._claim = claim
        self._lane = lane

    def is_lost(self) -> bool:
        if self.finished >= len(self.entries):
            return False
        entry = self.entries[self.finished]
        return entry.void or entry.record.is_stale()

    def finish(self, count: int) -> None:
        self.finished = max(self.finished, count)

    def widen(self) -> Sequence[R]:
        if not self._claim.is_open() or self.is_lost():
            return ()  # what waits in the lane is void or soon will be
        added = list(self._lane)
        self._lane.clear()
        for entry in added:
            entry.started = True
        self.entries += added
        return [entry.record for entry in added]

    async def pause(self, seconds: float) -> None:
        self._seat.leave()  # a key that waits must not keep others from working
        clock = asyncio.get_running_loop().time
        until = clock() + seconds
        while True:
            if self.is_lost():
                raise Abandoned
            if (left := until - clock()) <= 0:
                break
            await asyncio.sleep(min(STALE_POLL_S, left))
        await self._seat.take()
        if self.is_lost():
            raise Abandoned
