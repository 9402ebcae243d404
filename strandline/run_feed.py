"""RunFeed: `remember.runs` followed once a process, for all who wait for a run and all who watch a stream.

    feed ─► folded runs (the latest, bounded) ─► waiters, woken by their run's events
         └► recent events (bounded) ─► subscriptions, one a stream

A reader's place is a vector of offsets. A reader whose place the recent events still cover is served from memory; one that comes from
further back gets a follower of its own, until it has caught up. So a stream resumes without a gap and without a double at any process.
Every reader has a bounded queue: one that is too slow for its stream loses the connection, never an event, since it may resume.
"""

from __future__ import annotations

import asyncio
import math
from collections import OrderedDict, defaultdict, deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Final, Literal, Self, cast
from uuid import UUID

import structlog

from graph.model import RunView
from graph.runs import STATE_RANK, FoldedRun, folded, joined
from strandline.receipts import FINAL_STATES, RunUpdate
from strandline.run_streams import Message, Seen, Subscription
from strandline.run_tokens import PARTITIONS, TOPIC, Vector, decode_token, encode_token
from topics.codec import decode
from topics.envelope import Incoming, header
from topics.errors import Outage, Retryable, Undecodable
from topics.keys import derived_id
from topics.log import Log
from topics.records import RunEvent, StageReport

log = structlog.get_logger(__name__)

Until = Literal["queryable", "complete"]

RUNS_KEPT: Final = 20_000
EVENTS_KEPT: Final = 10_000
"""About a minute at 150 texts a second: long enough for a browser to reconnect."""

OWN_FOLLOWERS: Final = 3
"""Streams at once that come from further back: each reads the log in the loop that answers requests, so few may."""

_MAX_FOLLOWERS: Final = 16
"""With those that only wait: each is a connection to the log. One waits for ever where all it lacked has passed its retention."""

_IDLE: Final = timedelta(seconds=5)
"""Without a record for so long a follower only waits."""

_TURN_RECORDS: Final = 50
"""Read in one go by such a stream before everything else has its turn: a few milliseconds at most."""

MAX_STREAMS: Final = 200
"""Open at once in one process."""

HEARTBEAT: Final = timedelta(seconds=15)
_PAUSE: Final = timedelta(milliseconds=200)
_LONGEST_PAUSE: Final = timedelta(seconds=5)


def reached(state: str, until: Until) -> bool:
    """A final state ends every wait: what was waited for will not come."""
    return state in FINAL_STATES or STATE_RANK[state] >= STATE_RANK[until]


class Watch:
    """Waits for one run. Made by `RunFeed.watch` before the run's first record is sent, so that nothing is missed."""

    def __init__(self, feed: RunFeed, run_id: str) -> None:
        self._feed = feed
        self._run_id = run_id
        self.changed = asyncio.Event()

    async def until(self, until: Until, deadline: timedelta) -> RunView | None:
        """The run once it is so far or has ended, else as far as it is when `deadline` has passed; None if nothing was heard of it."""
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                while True:
                    view = self._feed.latest(self._run_id)
                    if self._feed.closed or (view is not None and reached(view.state, until)):
                        return view
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            return self._feed.latest(self._run_id)


class RunFeed:
    """Follows from the ends of the topic at its start, through every outage. Opened by `async with`; opening waits for nothing."""

    def __init__(
        self,
        log: Log,
        *,
        runs_kept: int = RUNS_KEPT,
        events_kept: int = EVENTS_KEPT,
        own_followers: int = OWN_FOLLOWERS,
    ) -> None:
        self._log = log
        self._runs_kept = runs_kept
        self._events_kept = events_kept
        self._own_followers = own_followers
        self._heard_at: dict[Subscription, float] = {}
        """By the streams that have followers of their own: the loop's time of their last record, infinite while the reader is awaited."""
        self._runs: OrderedDict[str, FoldedRun] = OrderedDict()
        self._watches: defaultdict[str, set[Watch]] = defaultdict(set)
        self._events: deque[Seen] = deque()
        self._subscriptions: set[Subscription] = set()
        self._positions: list[int] = []
        self._kept_from: list[int] = []
        self._begun = asyncio.Event()
        self._moved = asyncio.Condition()
        self._closed = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._follow(), name="run feed")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.wind_down()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    def wind_down(self) -> None:
        """Every stream ends after what it is just saying, every wait with what is known; new ones at once."""
        self._closed = True
        for watches in self._watches.values():
            for watch in watches:
                watch.changed.set()
        for subscription in self._subscriptions:
            subscription.end()

    @property
    def closed(self) -> bool:
        return self._closed

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    def latest(self, run_id: str) -> RunView | None:
        """What was heard of the run lately; None if nothing. May lack what happened before this process started."""
        run = self._runs.get(run_id)
        return None if run is None else run.view

    def get(self, user_id: str, run_id: str) -> RunView | None:
        """As `latest`, for runs of this user."""
        view = self.latest(run_id)
        return view if view is not None and view.user_id == user_id else None

    def fold(self, event: RunEvent) -> RunView:
        """Folds in an event, wakes those who wait, and gives the whole."""
        return self._absorb(folded(event))

    def absorb(self, view: RunView) -> RunView:
        """As `fold`, for a row of the run store."""
        stages = {report.stage: report for report in map(StageReport.model_validate, view.stages)}
        return self._absorb(FoldedRun(view, view.updated_at, stages))

    def _absorb(self, run: FoldedRun) -> RunView:
        run_id = run.view.run_id
        known = self._runs.pop(run_id, None)
        self._runs[run_id] = run = run if known is None else joined(known, run)
        self._forget()
        for watch in self._watches.get(run_id, ()):
            watch.changed.set()
        return run.view

    def _forget(self) -> None:
        for _ in range(max(0, len(self._runs) - self._runs_kept)):
            run_id, run = self._runs.popitem(last=False)
            if run_id in self._watches:
                self._runs[run_id] = run

    @contextmanager
    def watch(self, run_id: UUID | str) -> Iterator[Watch]:
        """Registers a waiter; what is heard of its run is kept until it leaves."""
        name = str(run_id)
        watch = Watch(self, name)
        self._watches[name].add(watch)
        try:
            yield watch
        finally:
            self._watches[name].discard(watch)
            if not self._watches[name]:
                del self._watches[name]

    async def wait(self, run_id: UUID | str, *, until: Until, deadline: timedelta) -> RunView | None:
        """For a run that was asked for before: see `Watch.until`. Whoever sends the request uses `watch` around the sending."""
        with self.watch(run_id) as watch:
            return await watch.until(until, deadline)

    async def started(self, deadline: timedelta) -> None:
        """Returns once the feed has its place on the log: from then on it misses nothing. Raises Outage after the deadline."""
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                await self._begun.wait()
        except TimeoutError:
            raise Outage("kafka", "Kafka does not answer: run states cannot be followed until it does") from None

    async def caught_up(self, deadline: timedelta) -> None:
        """Returns once all that is on the log now has been folded. Raises Outage after the deadline."""
        try:
            async with asyncio.timeout(deadline.total_seconds()):
                await self._begun.wait()
                ends = await self._log.ends(TOPIC)
                async with self._moved:
                    await self._moved.wait_for(
                        lambda: all(self._positions[partition] >= end for partition, end in ends.items())
                    )
        except TimeoutError:
            raise Outage("kafka", "Kafka does not answer in time: run states may be behind") from None

    # ── the stream ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def stream(
        self, user_id: str, *, dataset: str | None = None, after: str | None = None, heartbeat: timedelta = HEARTBEAT
    ) -> AsyncGenerator[Message, None]:
        """The user's events, from now on or behind the token `after`; a heartbeat first, and after each silence of `heartbeat`.

        In order per dataset. Ends when the feed closes, or when the reader is too slow. Raises Outage while the log is away, Refused
        for a token that is none, Retryable when too many streams are open or come from far back.
        """
        if len(self._subscriptions) >= MAX_STREAMS:
            raise Retryable(f"{MAX_STREAMS} streams are open, no more are taken", retry_after=timedelta(seconds=10))
        await self.started(timedelta(seconds=2))
        log_id = self._log.log_id
        vector = tuple(self._positions) if after is None else await self._place_of(after, log_id)
        subscription = Subscription(user_id, dataset, vector, 2 * self._events_kept)
        helper = self._attach(subscription)
        try:
            yield Message(encode_token(log_id, vector), None)
            while not (subscription.ended or self._closed):
                seen = await subscription.take(heartbeat)
                if seen is not None:
                    yield Message(encode_token(log_id, seen.vector), seen.update)
                elif not subscription.ended and not subscription.waiting:
                    yield Message(encode_token(log_id, subscription.vector), None)
        finally:
            self._subscriptions.discard(subscription)
            if helper is not None:
                helper.cancel()
                await asyncio.wait({helper})

    async def _place_of(self, token: str, log_id: str) -> Vector:
        """A token beyond the ends was not made on this topic, but on an older one of its name: then all of this one is new to its owner."""
        vector = decode_token(token, log_id)
        if any(at > position for at, position in zip(vector, self._positions, strict=True)):
            # Another process may be ahead of this one: only the log itself knows.
            ends = await self._log.ends(TOPIC)
            if any(at > ends.get(partition, 0) for partition, at in enumerate(vector)):
                log.warning("events.token_beyond_the_ends")
                return (0,) * PARTITIONS
        return vector

    def _attach(self, subscription: Subscription) -> asyncio.Task[None] | None:
        """Serves the subscription from memory if what it lacks is there, else starts a follower for it and gives that."""
        if self._join(subscription):
            return None
        busy_since = asyncio.get_running_loop().time() - _IDLE.total_seconds()
        busy = sum(at > busy_since for at in self._heard_at.values())
        if busy >= self._own_followers or len(self._heard_at) >= _MAX_FOLLOWERS:
            raise Retryable("too many streams are catching up: try again", retry_after=timedelta(seconds=5))
        self._heard_at[subscription] = math.inf
        helper = asyncio.create_task(self._catch_up(subscription), name="run events from further back")
        helper.add_done_callback(lambda _: self._heard_at.pop(subscription))
        return helper

    def _join(self, subscription: Subscription) -> bool:
        if any(at < kept for at, kept in zip(subscription.vector, self._kept_from, strict=True)):
            return False
        for seen in self._events:
            subscription.offer(seen)
        self._subscriptions.add(subscription)
        return True

    async def _catch_up(self, subscription: Subscription) -> None:
        turn, now = 0, asyncio.get_running_loop().time
        self._heard_at[subscription] = now()
        try:
            async with aclosing(self._records(subscription.vector)) as records:
                async for incoming in records:
                    turn += 1
                    if turn % _TURN_RECORDS == 0:
                        await asyncio.sleep(0)
                    if incoming.offset < subscription.vector[incoming.partition]:
                        # The topic was made anew: whoever resumes is given the new one from its beginning.
                        subscription.end()
                        return
                    _hand_over(incoming, subscription)
                    self._heard_at[subscription] = math.inf
                    await subscription.until_read()
                    self._heard_at[subscription] = now()
                    if self._join(subscription):
                        return
        except Exception:
            log.exception("events.catch_up_failed")
            subscription.end()

    # ── following ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _follow(self) -> None:
        pause = _PAUSE
        while True:
            try:
                await self._begin()
                async with aclosing(self._records(self._positions)) as records:
                    async for incoming in records:
                        pause = _PAUSE
                        if incoming.offset < self._positions[incoming.partition]:
                            self._begin_anew(incoming)
                            break
                        await self._take(incoming)
            except Retryable as error:
                log.warning("run_feed.waits", error=str(error), pause_s=pause.total_seconds())
            except Exception:
                # It must not end silently: all who wait for runs hang on it.
                log.exception("run_feed.failed", pause_s=pause.total_seconds())
            await asyncio.sleep(pause.total_seconds())
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _records(self, start: Sequence[int]) -> AsyncGenerator[Incoming, None]:
        # Every log follows by a generator, and only that can be closed at once.
        return cast(AsyncGenerator[Incoming, None], self._log.follow(TOPIC, dict(enumerate(start))))

    async def _begin(self) -> None:
        if self._begun.is_set():
            return
        ends = await self._log.ends(TOPIC)
        self._positions = [ends.get(partition, 0) for partition in range(PARTITIONS)]
        self._kept_from = list(self._positions)
        self._begun.set()

    def _begin_anew(self, incoming: Incoming) -> None:
        """A log gives none twice, so an offset that was passed belongs to a topic that was deleted and made again: all of it is new."""
        log.error(
            "run_feed.topic_made_anew",
            topic=TOPIC,
            partition=incoming.partition,
            offset=incoming.offset,
            position=self._positions[incoming.partition],
        )
        self._positions = [0] * PARTITIONS
        self._kept_from = [0] * PARTITIONS
        self._events.clear()
        for subscription in tuple(self._subscriptions):
            subscription.end()

    async def _take(self, incoming: Incoming) -> None:
        self._positions[incoming.partition] = incoming.offset + 1
        update = _update_of(incoming)
        if update is not None:
            self.fold(update)
            self._remember(Seen(incoming.partition, incoming.offset, update, tuple(self._positions)))
        async with self._moved:
            self._moved.notify_all()

    def _remember(self, seen: Seen) -> None:
        self._events.append(seen)
        if len(self._events) > self._events_kept:
            dropped = self._events.popleft()
            self._kept_from[dropped.partition] = dropped.offset + 1
        for subscription in tuple(self._subscriptions):
            subscription.offer(seen)


def _hand_over(incoming: Incoming, subscription: Subscription) -> None:
    """Others' records are told by their key: to decode them all would cost the most by far."""
    vector = _moved_to(subscription.vector, incoming)
    update = _update_of(incoming) if subscription.concerns(incoming.key) else None
    if update is not None:
        subscription.offer(Seen(incoming.partition, incoming.offset, update, vector))
    subscription.vector = vector


def _update_of(incoming: Incoming) -> RunUpdate | None:
    """None for a record that cannot be read: the stage that keeps run states puts it among the dead letters."""
    try:
        record = decode(incoming)
        assert isinstance(record, RunEvent)
        return RunUpdate.model_construct(**dict(record), event_id=_event_id(incoming))
    except Undecodable as error:
        log.warning("run_feed.undecodable", partition=incoming.partition, offset=incoming.offset, error=str(error))
        return None


def _event_id(incoming: Incoming) -> UUID:
    try:
        return UUID(header(incoming.headers, "ce_id"))
    except ValueError:
        return derived_id("run-event-at", str(incoming.partition), str(incoming.offset))


def _moved_to(vector: Vector, incoming: Incoming) -> Vector:
    places = list(vector)
    places[incoming.partition] = incoming.offset + 1
    return tuple(places)
