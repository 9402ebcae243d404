"""The aiohttp application, made from ROUTES: around each handler stand the guards, the error answers, the measures and the trace."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

import structlog
from aiohttp import web

from strandline.api.call import MAX_BODY_BYTES, Call, Room
from strandline.api.errors import answer_to, answer_to_bug, answer_to_http
from strandline.api.identity import Principal, identify, refuse_foreign_pages
from strandline.api.routes import ROUTES, Route
from strandline.memory import Memory
from strandline.metrics import HttpMetrics
from topics.errors import StrandlineError
from topics.trace import child_of, trace_id

log = structlog.get_logger(__name__)

Identify = Callable[[web.BaseRequest], Principal]
_Next = Callable[[web.Request], Awaitable[web.StreamResponse]]

_METHODS: Final = frozenset({"GET", "POST"})
_TRACEPARENT: Final = web.RequestKey("traceparent", str)
_PRINCIPAL: Final = web.RequestKey("principal", Principal)


def make_app(
    memory: Memory, metrics: HttpMetrics, *, identify: Identify = identify, room: Room | None = None
) -> web.Application:
    """The application; `identify` is asked first, before anything of a request is looked at."""
    app = web.Application(middlewares=[_Around(metrics, identify)], client_max_size=MAX_BODY_BYTES)
    room = room or Room()
    for route in ROUTES:
        handler = _bound(route, memory, metrics, room)
        app.router.add_route(route.method, route.path, handler, name=route.name)

    async def wind_down(_: web.Application) -> None:
        memory.feed.wind_down()

    app.on_shutdown.append(wind_down)
    return app


def _bound(route: Route, memory: Memory, metrics: HttpMetrics, room: Room) -> _Next:
    async def handle(request: web.Request) -> web.StreamResponse:
        with room.taken(0 if route.body is None else request.content_length):
            return await route.handler(Call(request, memory, metrics, request[_PRINCIPAL], request[_TRACEPARENT]))

    return handle


class _Around:
    """The one middleware. Its order is that of features.md 416: who asks, may they, does it exist."""

    __middleware_version__ = 1  # aiohttp: called as (request, handler)

    def __init__(self, metrics: HttpMetrics, identify: Identify) -> None:
        self._metrics = metrics
        self._identify = identify

    async def __call__(self, request: web.Request, handler: _Next) -> web.StreamResponse:
        started = time.perf_counter()
        request[_TRACEPARENT] = child_of(request.headers.get("traceparent", ""))
        trace = trace_id(request[_TRACEPARENT])
        with structlog.contextvars.bound_contextvars(trace_id=trace), self._metrics.open_requests.track_inprogress():
            answer = await self._answer(request, handler, trace)
            if not answer.prepared:
                answer.headers["traceparent"] = request[_TRACEPARENT]
                answer.headers["X-Content-Type-Options"] = "nosniff"
                answer.headers["Server"] = "strandline"  # aiohttp would tell its version and Python's
            self._note(request, answer, time.perf_counter() - started)
        return answer

    async def _answer(self, request: web.Request, handler: _Next, trace: str) -> web.StreamResponse:
        try:
            request[_PRINCIPAL] = self._identify(request)
            refuse_foreign_pages(request)
            return await handler(request)
        except StrandlineError as error:
            return answer_to(error)
        except web.HTTPException as error:
            return answer_to_http(error)
        except Exception:
            log.exception("http.failed", method=request.method, route=_route_of(request))
            return answer_to_bug(trace)

    def _note(self, request: web.Request, answer: web.StreamResponse, seconds: float) -> None:
        # The path as the table has it: what stands in the real one, or behind its `?`, may be private and has no bound.
        route = _route_of(request)
        if answer.content_type != "text/event-stream":
            method = request.method if request.method in _METHODS else "other"
            self._metrics.request_seconds.labels(method, route, str(answer.status)).observe(seconds)
        write = log.warning if answer.status >= 500 else log.info if route.startswith("/v1/") else log.debug
        write(
            "http.answered",
            method=request.method,
            route=route,
            status=answer.status,
            duration_ms=round(seconds * 1000, 1),
        )


def _route_of(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return "unknown" if resource is None else resource.canonical
