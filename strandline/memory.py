"""Memory: remember, ask and watch. The one service behind every edge: HTTP, command line, Python.

Accepting needs the log alone. What becomes of a run is told by the run feed (events as they happen) and the run store (rows); either may be
away or behind, so a run is looked for in both and the furthest state is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Literal, get_args
from uuid import UUID

import structlog

from graph.model import RunView
from graph.protocols import RunStore
from graph.read.answers import SearchPage
from graph.read.search import Search
from strandline.health import HealthCheck, PartState
from strandline.receipts import Receipt, Run, RunPage, receipt_of, run_of
from strandline.requests import RememberBody, SearchBody, to_request
from strandline.run_feed import RunFeed, Until, Watch, reached
from strandline.run_streams import Message
from topics import ids
from topics.clock import Clock, SystemClock
from topics.envelope import Outgoing
from topics.errors import NotFound, Outage, Refused, Retryable
from topics.log import Log
from topics.records import Record, RememberRequest, RunEvent, RunState
from topics.trace import child_of

log = structlog.get_logger(__name__)

WAIT_LIMIT: Final = timedelta(seconds=60)
PAGE_LIMIT: Final = 200
_STORE_PATIENCE: Final = timedelta(seconds=2)
"""For the run store, where the feed has an answer of its own."""

Searching = Callable[[SearchBody], Awaitable[SearchPage]]
"""Answers a question; `searching_in` makes one. Raises NotFound for an unknown dataset."""

Edge = Literal["api", "cli", "sdk"]


class Unconfirmed(Outage):
    """The log did not confirm a request in time; it may have arrived. Sent again under the same key it is one run either way."""

    def __init__(self, error: Outage, idempotency_key: str) -> None:
        super().__init__(
            error.service,
            f"{error}. Not accepted; send it again under idempotency_key {idempotency_key}: it will not be remembered twice",
            retry_after=error.retry_after or timedelta(seconds=5),
        )
        self.idempotency_key = idempotency_key


@dataclass(frozen=True, slots=True)
class Memory:
    """Made by strandline/wiring.py. All calls are for the user named in them; who may name whom is the edge's business.

    Errors: Refused for input that breaks a rule, NotFound, Outage with the service's name.
    """

    log: Log
    feed: RunFeed
    run_store: RunStore
    searching: Searching
    health: HealthCheck
    clock: Clock = field(default_factory=SystemClock)
    wait_limit: timedelta = WAIT_LIMIT
    edge: Edge = "api"

    async def remember(
        self, body: RememberBody, *, wait: Until | None = None, deadline: timedelta | None = None, traceparent: str = ""
    ) -> Receipt:
        """Durable on the log when this returns. With `wait` it returns once that state is reached, the run has ended otherwise, or
        `deadline` (at most `wait_limit`, which is also the default) has passed; the receipt says how far the run is.

        Raises Unconfirmed while the log is away.
        """
        patience = self._patience(deadline)
        request = to_request(body, self.clock, source_type=self.edge)
        with self.feed.watch(request.run_id) as watch:
            if wait is not None:
                await self.feed.started(min(patience, timedelta(seconds=5)))
            view = await self._accept(request, child_of(traceparent))
            if wait is not None:
                view = await self._wait(watch, view, wait, patience, repeated=body.idempotency_key is not None)
        return receipt_of(view)

    def _patience(self, deadline: timedelta | None) -> timedelta:
        if deadline is None:
            return self.wait_limit
        if not timedelta(0) < deadline <= self.wait_limit:
            limit = int(self.wait_limit.total_seconds() * 1000)
            raise Refused(f"the deadline must be 1 to {limit:,} ms", field="deadline_ms")
        return deadline

    async def _accept(self, request: RememberRequest, traceparent: str) -> RunView:
        accepted = _accepted(request)
        try:
            await self.log.append(self._records(request, accepted, traceparent))
        except Outage as error:
            raise Unconfirmed(error, request.idempotency_key) from error
        # So that whoever asks this process for the run right away finds it.
        view = self.feed.fold(accepted)
        log.info("request.accepted", run_id=str(request.run_id), source_type=request.source_type, state=view.state)
        return view

    def _records(self, request: RememberRequest, accepted: RunEvent, traceparent: str) -> tuple[Outgoing, Outgoing]:
        def out(topic: str, record: Record, id_: UUID) -> Outgoing:
            return Outgoing(
                topic,
                record,
                id_,
                sender=self.edge,
                time=request.accepted_at,
                subject=str(request.run_id),
                traceparent=traceparent,
            )

        return (
            out("remember.requests", request, ids.sent_id("remember.requests", request.run_id)),
            out("remember.runs", accepted, ids.run_event_id(request.run_id, "api", "accepted")),
        )

    async def _wait(self, watch: Watch, view: RunView, wait: Until, patience: timedelta, *, repeated: bool) -> RunView:
        started = asyncio.get_running_loop().time()
        if repeated:
            # The run may have ended long ago: its events are then behind the feed, its row is in the store.
            stored = await self._stored(view.user_id, view.run_id, patience)
            view = view if stored is None else self.feed.absorb(stored)

        def left() -> timedelta:
            spent = timedelta(seconds=asyncio.get_running_loop().time() - started)
            return max(patience - spent, timedelta(0))

        last_look = min(_STORE_PATIENCE, patience / 4)
        view = await watch.until(wait, max(left() - last_look, timedelta(0))) or view
        if reached(view.state, wait) or self.feed.closed:
            return view
        # A feed that is behind, or blind, must not make a run look unfinished that has long ended.
        stored = await self._stored(view.user_id, view.run_id, left())
        if stored is not None:
            self.feed.absorb(stored)
        return await watch.until(wait, left()) or view

    async def _stored(self, user_id: str, run_id: str, patience: timedelta) -> RunView | None:
        """The run's row; None also when the store does not answer soon: the feed knows the run, that must do."""
        try:
            async with asyncio.timeout(min(_STORE_PATIENCE, patience).total_seconds()):
                return await self.run_store.run(user_id, run_id)
        except (Retryable, TimeoutError) as error:
            log.info("run_store.not_asked", error=str(error) or "no answer in time")
            return None

    async def run(self, user_id: str, run_id: str | UUID) -> Run:
        """The run as far as feed and store know it. Raises NotFound, also for a run of another user."""
        name = str(_run_id(run_id))
        heard = self.feed.get(user_id, name)
        if heard is not None:
            stored = await self._stored(user_id, name, _STORE_PATIENCE)
            return run_of(heard if stored is None else self.feed.absorb(stored))
        stored = await self.run_store.run(user_id, name)
        if stored is not None:
            return run_of(stored)
        # Perhaps another process accepted it this very moment.
        await self.feed.caught_up(timedelta(seconds=3))
        heard = self.feed.get(user_id, name)
        if heard is None:
            raise NotFound(f"this user has no run {name}", field="run_id")
        return run_of(heard)

    async def runs(
        self, user_id: str, *, dataset: str | None = None, state: str | None = None, cursor: str = "", limit: int = 50
    ) -> RunPage:
        """One page, the newest first. Raises Refused for a cursor that is none, a limit not in 1..200, an unknown state."""
        if state is not None and state not in get_args(RunState):
            raise Refused(f"state must be one of {', '.join(get_args(RunState))}", field="state")
        if not 1 <= limit <= PAGE_LIMIT:
            raise Refused(f"limit must be 1 to {PAGE_LIMIT}", field="limit")
        views, next_cursor = await self.run_store.runs(
            user_id, dataset=dataset, state=state, before=cursor, limit=limit
        )
        return RunPage(runs=tuple(map(run_of, views)), next_cursor=next_cursor)

    async def search(self, body: SearchBody) -> SearchPage:
        """Hits, the best first. Raises NotFound for a dataset without a text."""
        return await self.searching(body)

    def events(
        self, user_id: str, *, dataset: str | None = None, after: str | None = None
    ) -> AsyncGenerator[Message, None]:
        """The user's run events as they happen: see `RunFeed.stream`."""
        return self.feed.stream(user_id, dataset=dataset, after=after)

    async def ready(self) -> PartState:
        """Whether requests can be accepted: the log alone decides."""
        return await self.health.part("kafka")

    async def parts(self) -> tuple[PartState, ...]:
        """Every service's state."""
        return await self.health.parts()


def searching_in(search: Search) -> Searching:
    """Questions as callers send them, put to the graph's search."""

    async def find(body: SearchBody) -> SearchPage:
        return await search.search(
            body.key, body.query, limit=body.limit, as_of=body.as_of, known_at=body.known_at, cursor=body.cursor
        )

    return find


def _accepted(request: RememberRequest) -> RunEvent:
    return RunEvent(
        user_id=request.user_id,
        dataset=request.dataset,
        run_id=request.run_id,
        state="accepted",
        at=request.accepted_at,
        accepted_at=request.accepted_at,
        idempotency_key=request.idempotency_key,
        source_type=request.source_type,
    )


def _run_id(run_id: str | UUID) -> UUID:
    try:
        return run_id if isinstance(run_id, UUID) else UUID(run_id)
    except ValueError:
        raise Refused("a run id is a UUID, as the receipt has it", field="run_id") from None
