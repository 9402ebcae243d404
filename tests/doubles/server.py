"""The HTTP server on doubles, with every piece at hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

import aiohttp

from strandline.api.models import SearchPage
from strandline.api.server import serving
from strandline.client import Client
from strandline.health import HealthCheck
from strandline.memory import Memory
from strandline.metrics import HttpMetrics
from strandline.requests import SearchBody
from strandline.run_feed import RunFeed
from tests.doubles.memory_log import MemoryLog
from tests.doubles.run_store import MemoryRunStore
from topics import ids
from topics.clock import SettableClock
from topics.envelope import Outgoing
from topics.errors import NotFound
from topics.records import RememberRequest, RunEvent, RunState, StageReport

AT = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


async def eventually(condition: Callable[[], object], *, seconds: float = 10) -> None:
    """Returns once the condition holds. TimeoutError if it does not come."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110  what is waited for has no event
            await asyncio.sleep(0.005)


@dataclass
class Bench:
    """A running server, the client on it, and what stands behind."""

    log: MemoryLog
    feed: RunFeed
    run_store: MemoryRunStore
    memory: Memory
    metrics: HttpMetrics
    url: str
    http: aiohttp.ClientSession
    client: Client
    clock: SettableClock = field(default_factory=lambda: SettableClock(AT))

    async def tell(self, request: RememberRequest, state: RunState, stage: str = "intake", *, error: str = "") -> None:
        """What a worker would send for a run."""
        at = AT + timedelta(
            seconds=("accepted", "queryable", "enriching", "complete", "failed", "rejected").index(state)
        )
        artifact = ids.artifact_id(request.key, request.source_type, request.idempotency_key)
        event = RunEvent(
            user_id=request.user_id,
            dataset=request.dataset,
            run_id=request.run_id,
            state=state,
            at=at,
            stage=StageReport(stage=stage, state="succeeded", started_at=at, finished_at=at),
            artifact_id=None if state == "rejected" else artifact,
            seq=None if state == "rejected" else 1,
            error=error,
            error_code="conflict" if error else "",
            accepted_at=request.accepted_at,
            idempotency_key=request.idempotency_key,
            source_type=request.source_type,
        )
        event_id = ids.run_event_id(request.run_id, stage, state)
        await self.log.append([Outgoing("remember.runs", event, event_id, stage, at, subject=str(request.run_id))])

    async def requested(self, run_id: UUID | str) -> RememberRequest:
        """The run's request, as it lies on the log."""
        return next(
            record
            for record in self.log.records("remember.requests")
            if isinstance(record, RememberRequest) and str(record.run_id) == str(run_id)
        )


@asynccontextmanager
async def running(
    *, log: MemoryLog | None = None, wait_limit: timedelta = timedelta(seconds=30)
) -> AsyncIterator[Bench]:
    """A server on a free port. With `log` it is a further process on the same log."""
    log, run_store, clock, metrics = log or MemoryLog(), MemoryRunStore(), SettableClock(AT), HttpMetrics()

    async def find(body: SearchBody) -> SearchPage:
        if body.dataset == "unknown":
            raise NotFound("this user has no dataset of that name", field="dataset")
        return SearchPage(hits=(), as_of=body.as_of or AT, known_at=body.known_at or AT)

    checks = {
        "kafka": lambda: log.ends("remember.runs"),
        "neo4j": lambda: run_store.runs("nobody", limit=1),
    }
    async with RunFeed(log) as feed:
        memory = Memory(log, feed, run_store, find, HealthCheck(checks), clock, wait_limit)
        async with (
            serving(memory, metrics=metrics, grace=timedelta(seconds=5)) as listening,
            aiohttp.ClientSession(base_url=listening.url) as http,
            Client(listening.url) as client,
        ):
            yield Bench(log, feed, run_store, memory, metrics, listening.url, http, client, clock)
