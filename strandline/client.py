"""Client: a server's routes as coroutines. Errors come back as the server had them (topics/errors.py).

async with Client("http://127.0.0.1:7878") as memory:
    receipt = await memory.remember(RememberBody(user_id="me", text="Ada works at Acme."), wait="queryable")
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Literal, Self, TypeVar
from urllib.parse import quote
from uuid import UUID

import aiohttp
from pydantic import BaseModel, ValidationError

from strandline.api.models import ErrorBody, Health, SearchPage
from strandline.receipts import Receipt, Run, RunPage, RunUpdate
from strandline.requests import RememberBody, SearchBody
from topics.errors import NotFound, Outage, Refused, Retryable, StrandlineError, TooLarge

A = TypeVar("A", bound=BaseModel)

Wait = Literal["queryable", "complete"]

_CONNECT = timedelta(seconds=5)
_ANSWER = timedelta(seconds=30)
"""On top of what the caller lets the server wait."""

_SILENCE = timedelta(seconds=60)
"""Of a stream of events: the server says something every 15 s, so a connection silent for longer is dead."""

_LONGEST_PAUSE_SECONDS = 10.0
_MAX_LINE_BYTES = 1024 * 1024


class Client:
    """Speaks to one server. Opened by `async with`; safe for many calls at once from one event loop.

    Raises `Outage("strandline")` when no server answers, `Outage(service)` when one is away behind it, `Refused` for input that breaks a
    rule, `NotFound`, `TooLarge`, and `StrandlineError` for a fault of the server.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(read_bufsize=_MAX_LINE_BYTES)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def remember(
        self, body: RememberBody, *, wait: Wait | None = None, deadline: timedelta | None = None, traceparent: str = ""
    ) -> Receipt:
        """Sends a text. With `wait` it returns once that state is reached, the run ended otherwise, or `deadline` (the server's limit if
        None) has passed: the receipt says which. A rejected or failed run is a receipt too, not an error."""
        query: dict[str, str] = {} if wait is None else {"wait": wait}
        if wait is not None and deadline is not None:
            query["deadline_ms"] = str(max(1, int(deadline.total_seconds() * 1000)))
        status, raw, headers = await self._exchange(
            "POST",
            "/v1/remember",
            query=query,
            body=body.model_dump_json(exclude_defaults=True).encode(),
            headers={"traceparent": traceparent} if traceparent else {},
            timeout=_ANSWER + (timedelta(0) if wait is None else deadline or timedelta(minutes=10)),
        )
        if status < 300:
            return _read(Receipt, raw)
        told = _error_body(raw)
        if told.receipt is not None:
            return told.receipt
        raise _error(status, told, headers)

    async def run(self, user_id: str, run_id: UUID | str) -> Run:
        """One run with its stages. Raises NotFound for a run this user does not have."""
        return await self._ask(Run, "GET", f"/v1/runs/{quote(str(run_id), safe='')}", query={"user_id": user_id})

    async def runs(
        self, user_id: str, *, dataset: str | None = None, state: str | None = None, cursor: str = "", limit: int = 50
    ) -> RunPage:
        """One page, the newest first; `cursor` is the `next_cursor` of the page before."""
        query = {"user_id": user_id, "limit": str(limit), "cursor": cursor or None, "dataset": dataset, "state": state}
        return await self._ask(
            RunPage, "GET", "/v1/runs", query={name: value for name, value in query.items() if value is not None}
        )

    async def search(self, body: SearchBody) -> SearchPage:
        """Raises NotFound for a dataset that has no text yet."""
        return await self._ask(
            SearchPage, "POST", "/v1/search", body=body.model_dump_json(exclude_defaults=True).encode()
        )

    async def health(self) -> Health:
        """All parts, also when some are away."""
        return await self._ask(Health, "GET", "/health")

    async def events(
        self,
        user_id: str,
        *,
        dataset: str | None = None,
        after: str | None = None,
        connected: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[tuple[str, RunUpdate], None]:
        """Run events as they happen, for ever, each with a token; `after` a token continues behind it without a gap, also at another
        server. None starts now. A lost connection or a server's restart is waited for; only the first connection may raise Outage.
        `connected` is called once, when the server has answered: nothing that happens from then on is missed."""
        token, began, pause = after, False, 0.5
        query = {"user_id": user_id} if dataset is None else {"user_id": user_id, "dataset": dataset}
        while True:
            try:
                async for at, data in self._stream(query, token):
                    token, pause = at, 0.5
                    if not began:
                        began = True
                        connected()
                    if data:
                        yield at, _read(RunUpdate, data)
            except (Outage, Retryable):
                if not began:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    async def _stream(self, query: Mapping[str, str], token: str | None) -> AsyncIterator[tuple[str, bytes]]:
        """(token, data) of each message; data is empty when only the token moved on. Ends when the server ends it."""
        headers = {"Accept": "text/event-stream"} | ({} if token is None else {"Last-Event-ID": token})
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=_CONNECT.total_seconds(), sock_read=_SILENCE.total_seconds()
        )
        try:
            async with self._open().get(
                f"{self.url}/v1/events", params=query, headers=headers, timeout=timeout
            ) as answer:
                if answer.status != 200:
                    raise _error(answer.status, _error_body(await answer.read()), answer.headers)
                at, data = token or "", b""
                async for line in answer.content:
                    name, _, value = line.rstrip(b"\r\n").partition(b":")
                    if name == b"id":
                        at = value.strip().decode("ascii", "replace")
                    elif name == b"data":
                        data += value.removeprefix(b" ")
                    elif not line.strip():
                        yield at, data
                        data = b""
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._away(error) from error

    async def _ask(
        self, model: type[A], method: str, path: str, *, query: Mapping[str, str] = {}, body: bytes | None = None
    ) -> A:
        status, raw, headers = await self._exchange(method, path, query=query, body=body, headers={}, timeout=_ANSWER)
        if status >= 300:
            raise _error(status, _error_body(raw), headers)
        return _read(model, raw)

    async def _exchange(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str],
        body: bytes | None,
        headers: Mapping[str, str],
        timeout: timedelta,
    ) -> tuple[int, bytes, Mapping[str, str]]:
        sent = dict(headers) | ({} if body is None else {"Content-Type": "application/json"})
        limits = aiohttp.ClientTimeout(total=timeout.total_seconds(), sock_connect=_CONNECT.total_seconds())
        try:
            async with self._open().request(
                method,
                f"{self.url}{path}",
                params=query,
                data=None if body is None else io.BytesIO(body),
                headers=sent,
                timeout=limits,
                allow_redirects=False,
            ) as answer:
                return answer.status, await answer.read(), answer.headers
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self._away(error) from error

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the client is not open: use it in `async with`")
        return self._session

    def _away(self, error: BaseException) -> Outage:
        if isinstance(error, aiohttp.ClientConnectorError):
            return Outage(
                "strandline",
                f"no server at {self.url}: start everything with `strandline up` (or `strandline serve` if the services run)",
            )
        reason = str(error) or type(error).__name__
        return Outage(
            "strandline", f"no answer from {self.url} ({reason}): look at the server's log, or check the address"
        )


def _read(model: type[A], raw: bytes) -> A:
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise StrandlineError(
            f"the server's answer is no {model.__name__}: is it Strandline, and not older than this client?"
        ) from error


def _error_body(raw: bytes) -> ErrorBody:
    try:
        return ErrorBody.model_validate_json(raw)
    except ValidationError:
        return ErrorBody(
            error=f"an answer that is not Strandline's: {json.dumps(raw[:120].decode('utf-8', 'replace'))}",
            code="error",
        )


def _error(status: int, told: ErrorBody, headers: Mapping[str, str]) -> StrandlineError:
    """The server's error as the exception it had."""
    wait = headers.get("Retry-After", "")
    retry_after = timedelta(seconds=int(wait)) if wait.isdigit() else None
    if told.code == "outage":
        return Outage(told.service or "strandline", told.error, retry_after=retry_after)
    if status in (429, 503):
        return Retryable(told.error, retry_after=retry_after)
    if status == 404:
        return NotFound(told.error, field=told.field or "")
    if status == 413:
        return TooLarge(told.error, field=told.field or "")
    if 400 <= status < 500:
        return Refused(told.error, field=told.field or "")
    return StrandlineError(told.error)
