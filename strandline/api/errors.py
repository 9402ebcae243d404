"""Which error is which answer. One body for all of them (ErrorBody); the status follows from the error's type."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import ClassVar, Final

from aiohttp import web

from strandline.api.models import ErrorBody
from strandline.memory import Unconfirmed
from strandline.requests import BadJson
from topics.errors import NotFound, Outage, Refused, Retryable, StrandlineError, TooLarge


class Unidentified(Refused):
    """Nobody knows who is asking."""

    code: ClassVar[str] = "unidentified"


class Forbidden(Refused):
    """Whoever is asking may not."""

    code: ClassVar[str] = "forbidden"


class WrongMediaType(Refused):
    """The body is not declared as JSON."""

    code: ClassVar[str] = "unsupported_media_type"


class TooSlow(Refused):
    """The body did not arrive in time."""

    code: ClassVar[str] = "request_timeout"


STATUS: Final[dict[type[StrandlineError], int]] = {
    BadJson: 400,
    Unidentified: 401,
    Forbidden: 403,
    NotFound: 404,
    TooSlow: 408,
    TooLarge: 413,
    WrongMediaType: 415,
    Refused: 422,
    Retryable: 503,
    StrandlineError: 500,
}
"""By the nearest base class that has a row."""

_HTTP_CODES: Final[dict[int, tuple[str, str]]] = {
    404: ("not_found", "there is no such route; GET /docs lists them"),
    405: ("method_not_allowed", "this route has other methods; GET /docs lists them"),
    413: ("too_large", "the body has more bytes than are taken"),
}
_RETRY_AFTER: Final = timedelta(seconds=5)


def status_of(error: StrandlineError) -> int:
    """The HTTP status of an error."""
    return next(STATUS[base] for base in type(error).__mro__ if base in STATUS)


def answer_to(error: StrandlineError) -> web.Response:
    """The answer that tells the error; with `Retry-After` where trying again can help."""
    body = ErrorBody(
        error=str(error) or (type(error).__doc__ or "").strip(),
        code=error.code,
        field=(error.field or None) if isinstance(error, Refused) else None,
        service=error.service if isinstance(error, Outage) else None,
        idempotency_key=error.idempotency_key if isinstance(error, Unconfirmed) else None,
    )
    answer = told(status_of(error), body)
    if isinstance(error, Retryable):
        wait = _RETRY_AFTER if error.retry_after is None else error.retry_after
        answer.headers["Retry-After"] = str(max(1, math.ceil(wait.total_seconds())))
    return answer


def answer_to_http(error: web.HTTPException) -> web.Response:
    """aiohttp's own refusals (no such route, wrong method, body too large) in our body."""
    code, text = _HTTP_CODES.get(error.status, (error.reason.lower().replace(" ", "_"), error.reason))
    answer = told(error.status, ErrorBody(error=text, code=code))
    if "Allow" in error.headers:
        answer.headers["Allow"] = error.headers["Allow"]
    return answer


def answer_to_bug(trace_id: str) -> web.Response:
    """Says only where to look: an exception's text may hold anything."""
    text = f"an error that nobody foresaw; the server's log has it under trace {trace_id}"
    return told(500, ErrorBody(error=text, code="internal"))


def told(status: int, body: ErrorBody) -> web.Response:
    """An answer with that body."""
    return web.Response(status=status, text=body.model_dump_json(exclude_none=True), content_type="application/json")
