"""The HTTP server: listens on this machine, and ends cleanly: what is being answered is finished, streams and waits end at once."""

from __future__ import annotations

import asyncio
import errno
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

from strandline.api.app import make_app
from strandline.api.errors import told
from strandline.api.identity import require_loopback
from strandline.api.models import ErrorBody
from strandline.memory import Memory
from strandline.metrics import HttpMetrics
from topics.errors import Refused

log = structlog.get_logger(__name__)

GRACE: Final = timedelta(seconds=20)
"""Requests that are not answered by then are cut off."""


@dataclass(frozen=True, slots=True)
class Listening:
    """A running server."""

    host: str
    port: int

    @property
    def url(self) -> str:
        return f"http://[{self.host}]:{self.port}" if ":" in self.host else f"http://{self.host}:{self.port}"


@asynccontextmanager
async def serving(
    memory: Memory,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    metrics: HttpMetrics | None = None,
    grace: timedelta = GRACE,
) -> AsyncGenerator[Listening, None]:
    """Serves until the block is left; port 0 takes a free one. Raises Refused for an address others could reach, or a port in use."""
    require_loopback(host)
    # One address, so that port 0 is one port: "localhost" could be two.
    address = "127.0.0.1" if host == "localhost" else host
    runner = _Runner(
        make_app(memory, metrics or HttpMetrics()),
        access_log=None,
        shutdown_timeout=grace.total_seconds(),
        handle_signals=False,
    )
    await runner.setup()
    try:
        listening = await _listen(runner, address, port)
        log.info("api.listening", url=listening.url)
        yield listening
    finally:
        log.info("api.ending", grace_s=grace.total_seconds())
        await runner.cleanup()
        log.info("api.ended")


async def serve(memory: Memory, *, host: str, port: int, announce: Callable[[str], object] = print) -> None:
    """Serves until SIGTERM or SIGINT; `announce` is told the address once requests are taken."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGINT)
    for one in signals:
        loop.add_signal_handler(one, stop.set)
    try:
        async with serving(memory, host=host, port=port) as listening:
            announce(listening.url)
            await stop.wait()
    finally:
        for one in signals:
            loop.remove_signal_handler(one)


async def _listen(runner: web.AppRunner, host: str, port: int) -> Listening:
    site = web.TCPSite(runner, host, port)
    try:
        await site.start()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise Refused(
                f"port {port} on {host} is taken: stop what listens there, or set STRANDLINE_API__PORT (0 takes a free one)",
                field="STRANDLINE_API__PORT",
            ) from error
        raise Refused(f"cannot listen on {host} port {port}: {error.strerror}", field="STRANDLINE_API__HOST") from error
    bound = runner.addresses[0]
    return Listening(bound[0], bound[1])


class _Connection(RequestHandler):
    """Answers what is no readable HTTP request in our error body too: aiohttp itself does so in plain text, outside the application."""

    __slots__ = ()

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        answer = super().handle_error(request, status, exc, message)
        if status >= 500:
            body = ErrorBody(error="an error that nobody foresaw; the server's log has it", code="internal")
        else:
            body = ErrorBody(
                error="this is no HTTP request that can be read, or its head is too large", code="bad_request"
            )
        ours = told(answer.status, body)
        ours.force_close()
        return ours

    def log_exception(self, *args: Any, **fields: Any) -> None:
        error = fields.get("exc_info")
        if isinstance(error, HttpProcessingError):
            log.info("http.unreadable", kind=type(error).__name__)  # its text repeats the caller's bytes
        else:
            log.error("http.connection_failed", exc_info=error)


class _Server(web.Server):
    def __call__(self) -> RequestHandler:
        return _Connection(self, loop=self._loop, **self._kwargs)


class _Runner(web.AppRunner):
    async def _make_server(self) -> web.Server:
        made = await super()._make_server()
        return _Server(made.request_handler, request_factory=made.request_factory, loop=made._loop, **made._kwargs)
