"""ROUTES, the one table of the HTTP API. The app, the OpenAPI document and the page of routes are made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel

from strandline.api import documents, handlers
from strandline.api.call import Handler
from strandline.api.models import Health, Live, Ready, SearchPage
from strandline.api.queries import EventsQuery, NoQuery, Query, RememberQuery, RunsQuery, UserQuery
from strandline.receipts import Receipt, Run, RunPage
from strandline.requests import RememberBody, SearchBody

_ALWAYS: Final = (401, 403, 500)
_BODY: Final = (400, 408, 413, 415, 422)


@dataclass(frozen=True, slots=True)
class Answered:
    """A good answer: its status, what it means, and its model or, without one, its media type."""

    status: int
    doc: str
    model: type[BaseModel] | None = None
    media_type: str = "application/json"


@dataclass(frozen=True, slots=True)
class Route:
    """One row. `errors` are the statuses it can answer with beyond those of every route; all have the body ErrorBody."""

    method: str
    path: str
    name: str
    handler: Handler
    summary: str
    doc: str
    answers: tuple[Answered, ...]
    query: type[Query] = NoQuery
    body: type[BaseModel] | None = None
    errors: tuple[int, ...] = ()
    example: Mapping[str, Any] = field(default_factory=dict)
    """A body, or parameters, that the route takes as they are here."""

    @property
    def all_errors(self) -> tuple[int, ...]:
        return tuple(sorted({*_ALWAYS, *self.errors, *(_BODY if self.body is not None else ())}))


ROUTES: Final[tuple[Route, ...]] = (
    Route(
        "POST",
        "/v1/remember",
        "remember",
        handlers.remember,
        "Remember a text",
        "Accepted means durable: the request is on the log, and survives a crash of any process, before the answer. The same request "
        "under the same idempotency key is one run however often it is sent; another request under a used key is rejected. While the "
        "log is away nothing is accepted (503): send again under the `idempotency_key` that the answer names.",
        (
            Answered(200, "The state that was waited for is reached.", Receipt),
            Answered(
                202, "Accepted; with `wait`: the deadline passed first, and the receipt says how far it is.", Receipt
            ),
        ),
        query=RememberQuery,
        body=RememberBody,
        errors=(502, 503),
        example={
            "user_id": "me",
            "text": "Ada has joined Acme as head of research.",
            "reference_time": "2025-03-01T09:30:00Z",
            "idempotency_key": "mail-4711",
        },
    ),
    Route(
        "GET",
        "/v1/runs/{run_id}",
        "run",
        handlers.run,
        "One run with its stages",
        "Found right after its receipt, at every server process.",
        (Answered(200, "The run as far as it is.", Run),),
        query=UserQuery,
        errors=(404, 422, 503),
        example={"run_id": "6d4f7f0c-52a3-5c1e-9a52-0f6f6f9f7a11", "user_id": "me"},
    ),
    Route(
        "GET",
        "/v1/runs",
        "runs",
        handlers.runs,
        "Runs, the newest first",
        "One page; `next_cursor` of the answer asks for the next.",
        (Answered(200, "A page; empty for a user without runs.", RunPage),),
        query=RunsQuery,
        errors=(422, 503),
        example={"user_id": "me", "limit": 20},
    ),
    Route(
        "GET",
        "/v1/events",
        "events",
        handlers.events,
        "Run events as they happen",
        "Server-sent events: each `data` is a RunUpdate as JSON, each `id` a token. A client that reconnects with the header "
        "`Last-Event-ID` (a browser's EventSource does) goes on behind it without a gap, at any server process. An event may come twice, "
        "with the same `event_id`. A comment comes after 15 s of silence. A reader that does not keep up is disconnected and may resume.",
        (Answered(200, "A stream without end.", media_type="text/event-stream"),),
        query=EventsQuery,
        errors=(422, 503),
        example={"user_id": "me"},
    ),
    Route(
        "POST",
        "/v1/search",
        "search",
        handlers.search,
        "Ask the memory",
        "Words and vectors together. Only what was true at `as_of`, as believed at `known_at`, is answered; each hit has its facts with "
        "their times, and the texts they are from.",
        (Answered(200, "Hits, the best first; none is no error.", SearchPage),),
        body=SearchBody,
        errors=(404, 503),
        example={"user_id": "me", "query": "Where does Ada work?", "limit": 5},
    ),
    Route(
        "GET",
        "/live",
        "live",
        handlers.live,
        "Is the process alive",
        "Asks no service: an outage elsewhere must not restart this process.",
        (Answered(200, "It is.", Live),),
    ),
    Route(
        "GET",
        "/ready",
        "ready",
        handlers.ready,
        "Are requests accepted",
        "Needs the log alone: while the graph is away texts are accepted, and remembered once it is back.",
        (Answered(200, "They are.", Ready),),
        errors=(503,),
    ),
    Route(
        "GET",
        "/health",
        "health",
        handlers.health,
        "How all parts are",
        "Always 200 while the process can answer; `status` is degraded when a part is away.",
        (Answered(200, "All parts.", Health),),
    ),
    Route(
        "GET",
        "/metrics",
        "metrics",
        handlers.metrics,
        "Figures for Prometheus",
        "Text format 1.0.0.",
        (Answered(200, "All figures of this process.", media_type="text/plain"),),
    ),
    Route(
        "GET",
        "/openapi.json",
        "openapi",
        documents.openapi,
        "This API as OpenAPI 3.1",
        "Made from the same table as the routes.",
        (Answered(200, "The document.", media_type="application/json"),),
    ),
    Route(
        "GET",
        "/docs",
        "docs",
        documents.docs,
        "This API as a page",
        "Needs nothing from elsewhere.",
        (Answered(200, "The page.", media_type="text/html"),),
    ),
)
