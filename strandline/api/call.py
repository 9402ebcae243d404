"""Call: one request with what a handler may use, and the reading of its body."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeVar

from aiohttp import web
from pydantic import BaseModel

from strandline.api.errors import Forbidden, TooSlow, WrongMediaType
from strandline.api.identity import Principal
from strandline.api.queries import Query, read_query
from strandline.memory import Memory
from strandline.metrics import HttpMetrics
from strandline.requests import parsed
from topics import rules
from topics.errors import Retryable, TooLarge

MAX_BODY_BYTES: Final = 6 * rules.MAX_TEXT_BYTES + 256 * 1024
"""JSON may write each byte of a text as six (`\\u0061`); the rest of the body is small."""

ROOM_BYTES: Final = 256 * 1024 * 1024

_BODY_PATIENCE: Final = timedelta(seconds=30)

Q = TypeVar("Q", bound=Query)
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler is given."""

    request: web.Request
    memory: Memory
    metrics: HttpMetrics
    principal: Principal
    traceparent: str

    def query(self, model: type[Q]) -> Q:
        """The parameters behind the `?`. Raises Refused."""
        return read_query(model, self.request.query)

    async def body(self, model: type[M]) -> M:
        """The JSON body. Raises WrongMediaType, TooLarge, TooSlow, BadJson, Refused, in this order."""
        # A web page can post across origins without asking only with other content types: so this is a guard as well.
        if self.request.content_type != "application/json" or (self.request.charset or "utf-8").lower() != "utf-8":
            raise WrongMediaType("send the body as JSON in UTF-8, with the header Content-Type: application/json")
        if self.request.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
            raise WrongMediaType("send the body as it is, without a Content-Encoding: compressed bodies are not taken")
        if (self.request.content_length or 0) > MAX_BODY_BYTES:
            raise TooLarge(f"the body has more than the {MAX_BODY_BYTES:,} bytes that are taken")
        try:
            async with asyncio.timeout(_BODY_PATIENCE.total_seconds()):
                raw = await self.request.read()
        except TimeoutError:
            raise TooSlow(f"the body did not arrive within {_BODY_PATIENCE.total_seconds():g} s") from None
        return parsed(model, raw)

    def require(self, user_id: str) -> None:
        """Raises Forbidden if the caller may not use this user's memory. Before anything is looked up, so that nobody can probe."""
        if not self.principal.may_use(user_id):
            raise Forbidden("you may not use this user's memory", field="user_id")


class Room:
    """Bytes of bodies that may be under way at once: while the log is away each waits, and memory must not fill with them."""

    def __init__(self, size: int = ROOM_BYTES) -> None:
        self._left = size

    @contextmanager
    def taken(self, size: int | None) -> Iterator[None]:
        """Holds room for a body of so many bytes, the most there can be if that is not known. Raises Retryable when there is none."""
        size = MAX_BODY_BYTES if size is None else min(size, MAX_BODY_BYTES)
        if size > self._left:
            raise Retryable("too much is under way here: try again in a moment", retry_after=timedelta(seconds=1))
        self._left -= size
        try:
            yield
        finally:
            self._left += size


Handler = Callable[[Call], Awaitable[web.StreamResponse]]


def answered(body: BaseModel, status: int = 200) -> web.Response:
    """A JSON answer."""
    return web.Response(status=status, text=body.model_dump_json(), content_type="application/json")
