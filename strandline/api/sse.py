"""Run events as server-sent events (WHATWG HTML, "Server-sent events"): a browser's EventSource reads them and resumes by itself.

A heartbeat is a comment together with an `id` line: without data no event is dispatched, but the id counts, so that a client that
reconnects after a quiet hour does not read that hour again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta
from typing import Final

import structlog
from aiohttp import web

from strandline.api.call import Call
from strandline.run_streams import Message

log = structlog.get_logger(__name__)

_WRITE_PATIENCE: Final = timedelta(seconds=30)
"""A reader that takes nothing for so long is cut off; it may resume where it was."""

_RECONNECT = b"retry: 2000\n"


async def send_events(call: Call, stream: AsyncGenerator[Message, None]) -> web.StreamResponse:
    """Writes the stream until it ends, the reader leaves or does not keep up. Errors before the first byte are ordinary answers."""
    async with aclosing(stream) as messages:
        with call.metrics.open_streams.track_inprogress():
            first = await anext(messages)
            response = web.StreamResponse(
                headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
            )
            await response.prepare(call.request)
            try:
                await _write(response, _RECONNECT + _lines(first))
                async for message in messages:
                    await _write(response, _lines(message))
                    call.metrics.stream_events.inc(message.update is not None)
                await response.write_eof()
            except TimeoutError:
                call.metrics.slow_streams.inc()
                log.info("events.reader_cut_off", patience_s=_WRITE_PATIENCE.total_seconds())
                if call.request.transport is not None:
                    call.request.transport.abort()
            except ConnectionError:
                pass  # the reader left: nothing to tell it
            return response


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(_WRITE_PATIENCE.total_seconds()):
        await response.write(data)


def _lines(message: Message) -> bytes:
    if message.update is None:
        return f": heartbeat\nid: {message.token}\n\n".encode()
    return f"id: {message.token}\ndata: {message.update.model_dump_json(exclude_none=True)}\n\n".encode()
