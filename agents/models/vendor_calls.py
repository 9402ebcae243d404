"""One call to a model vendor: how many at a time, how long, and what its failure means.

Both SDKs come from one generator and raise the same shapes, so one reading serves both:

    401, 403                                   NeedsReauth
    402, or a code that says "no money left"   Outage, asked again rarely: every record would fail, and payment cures all of them
    408, 409                                   Retryable
    429                                        Retryable, after what Retry-After says
    5xx, 529, time-outs, broken connections    Outage
    a web page instead of an API's answer      Outage: something between us and the vendor spoke
    other 4xx                                  Permanent
    200 that is no readable answer             Retryable

The SDKs' own retries stay off (`max_retries=0`): the lanes retry, obey `retry_after` and know what else waits. No vendor's message is passed
on: it may repeat the user's text or parts of the key. Status, code and request id are enough to find the case in the vendor's console.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import TypeVar

import httpx2

from topics.errors import NeedsReauth, Outage, Permanent, Retryable, StrandlineError

Answer = TypeVar("Answer")

RETRY_AFTER_CAP = timedelta(minutes=5)
"""A longer wait is asked for by broken proxies, not by vendors; after it we simply ask again."""

BILLING_RETRY = RETRY_AFTER_CAP
"""Between two tries while the account has no credit."""

CONNECT_TIMEOUT = timedelta(seconds=5)

_NO_MONEY = ("insufficient_quota", "billing_error", "billing_hard_limit_reached", "credit balance is too low")
_SECRET_HEADERS = ("authorization", "x-api-key", "api-key", "proxy-authorization", "cookie")


def http_timeout(total: timedelta) -> httpx2.Timeout:
    """Per read and write; the deadline of the whole call is VendorCalls' own, since a slow drip never trips these."""
    return httpx2.Timeout(total.total_seconds(), connect=min(CONNECT_TIMEOUT, total).total_seconds())


def quiet_sdk_logs(name: str) -> None:
    """Keeps an SDK from logging whole requests (the user's text) when the root logger is set to debug."""
    logger = logging.getLogger(name)
    if logger.level < logging.INFO:  # also NOTSET, which would take the root's
        logger.setLevel(logging.INFO)


class VendorCalls:
    """Runs calls of one client, at most `concurrency` at once, each within `deadline`. Raises only StrandlineError (and cancellation)."""

    def __init__(self, vendor: str, *, service: str, deadline: timedelta, concurrency: int) -> None:
        self._vendor, self._service = vendor, service
        self._deadline = deadline
        self._slots = asyncio.Semaphore(concurrency)

    async def run(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        async with self._slots:
            try:
                async with asyncio.timeout(self._deadline.total_seconds()):
                    return await call()
            except StrandlineError:
                raise
            except Exception as error:
                _forget_secrets(error)
                raise meaning_of(error, self._vendor, self._service) from error


def meaning_of(error: Exception, vendor: str, service: str) -> StrandlineError:
    """The error tree's word for whatever an SDK raised."""
    response = getattr(error, "response", None)
    if isinstance(response, httpx2.Response) and response.status_code >= 400:
        return _meaning_of_status(response, _codes(error), vendor, service)
    if isinstance(error, TimeoutError) or type(error).__name__ == "APITimeoutError":
        return Outage(service, f"{vendor} did not answer in time; the call is repeated")
    # A connection cut while the body is read leaves the SDKs as httpx2's own error.
    if isinstance(error, httpx2.HTTPError | OSError) or type(error).__name__ == "APIConnectionError":
        reason = type(error.__cause__ or error).__name__
        return Outage(
            service, f"no connection to {vendor} ({reason}); the call is repeated: check the network and base_url"
        )
    return Retryable(f"{vendor} sent an answer that cannot be read ({type(error).__name__}); the call is repeated")


def _meaning_of_status(response: httpx2.Response, codes: str, vendor: str, service: str) -> StrandlineError:
    status = response.status_code
    retry_after = retry_after_of(response.headers)
    what = f"{vendor} answered {status}{_label(codes)}{_request_id(response)}"
    if status >= 500:
        return Outage(
            service, f"{what}: the service is down or overloaded; the call is repeated", retry_after=retry_after
        )
    if "html" in response.headers.get("content-type", ""):
        return Outage(
            service,
            f"{what} with a web page: a proxy spoke, not the API; check the network and base_url",
            retry_after=retry_after,
        )
    if status == 402 or any(sign in codes for sign in _NO_MONEY):
        return Outage(
            service,
            f"{what}: the account has no credit left; add credit, work then goes on by itself",
            retry_after=BILLING_RETRY,
        )
    if status in (401, 403):
        return NeedsReauth(f"{what}: the key is wrong, revoked or may not use this model; set another key")
    if status == 429:
        return Retryable(f"{what}: too many requests; the call is repeated", retry_after=retry_after)
    if status in (408, 409):
        return Retryable(f"{what}; the call is repeated", retry_after=retry_after)
    if status == 404:
        return Permanent(f"{what}: no such model or route; check the model's name and base_url")
    return Permanent(f"{what}: the request was not accepted, and would not be if repeated")


def _codes(error: Exception) -> str:
    """The machine-readable words of an error's body, plus its message: only ever searched, never shown whole."""
    body = getattr(error, "body", None)
    inner = body.get("error", body) if isinstance(body, dict) else None
    if not isinstance(inner, dict):
        return ""
    return "\n".join(str(inner.get(field) or "") for field in ("code", "type", "message"))


def _label(codes: str) -> str:
    shown = [
        word for word in codes.split("\n")[:2] if word.replace("_", "").replace(".", "").isalnum() and len(word) <= 60
    ]
    return f" ({', '.join(dict.fromkeys(shown))})" if shown else ""


def _request_id(response: httpx2.Response) -> str:
    found = response.headers.get("request-id") or response.headers.get("x-request-id") or ""
    return f", request {found[:80]}" if found.replace("-", "").replace("_", "").isalnum() else ""


def retry_after_of(headers: Mapping[str, str]) -> timedelta | None:
    """The wait a reply asks for, 0 to RETRY_AFTER_CAP; None if it asks for none or writes nonsense.

    `retry-after-ms`, then `Retry-After` as seconds or as an HTTP date (RFC 9110 §10.2.3). A date is measured against the reply's own
    `Date`, so a wrong clock on this machine does not matter.
    """
    try:
        if "retry-after-ms" in headers:
            return _capped(timedelta(milliseconds=float(headers["retry-after-ms"])))
        value = headers.get("retry-after", "").strip()
        if not value:
            return None
        if value.replace(".", "", 1).isdigit():
            return _capped(timedelta(seconds=float(value)))
        until = parsedate_to_datetime(value)
        now = parsedate_to_datetime(headers["date"]) if "date" in headers else datetime.now(UTC)
        return _capped(_aware(until) - _aware(now))
    except OverflowError:
        return RETRY_AFTER_CAP
    except (ValueError, TypeError):
        return None


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _capped(wait: timedelta) -> timedelta:
    return min(max(wait, timedelta(0)), RETRY_AFTER_CAP)


def _forget_secrets(error: BaseException | None) -> None:
    """Takes key and message out of an SDK's error: it stays reachable as our error's cause, and tracebacks get printed."""
    while error is not None:
        try:
            request = getattr(error, "request", None)
        except RuntimeError:  # httpx2: "the request property has not been set"
            request = None
        if isinstance(request, httpx2.Request):
            for header in _SECRET_HEADERS:
                request.headers.pop(header, None)
        if isinstance(getattr(error, "response", None), httpx2.Response):
            error.args = ("the vendor's message is left out: it may repeat the text or the key",)
        error = error.__cause__ or error.__context__
