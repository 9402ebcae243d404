"""Neo4j's errors as ours. Whether a try may be repeated is decided here and nowhere else; the driver's own retries are not used."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from neo4j.exceptions import (
    AuthError,
    ConfigurationError,
    DatabaseUnavailable,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
)

from topics.errors import Outage, Permanent, Retryable, StrandlineError

SERVICE = "neo4j"

_AWAY = (ServiceUnavailable, SessionExpired, DatabaseUnavailable, AuthError, ConnectionError, OSError)
"""Refused credentials too: they are the operator's to mend, and no record may be given up for them."""

_AWAY_CODES = frozenset(
    {
        "Neo.ClientError.Security.AuthenticationRateLimit",
        "Neo.ClientError.Database.DatabaseNotFound",
        "Neo.TransientError.General.DatabaseUnavailable",
        "Neo.TransientError.Database.DatabaseUnavailable",
    }
)
_RETRYABLE_CODES = frozenset(
    {
        "Neo.ClientError.Transaction.TransactionTimedOut",
        "Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration",
        "Neo.ClientError.Transaction.LockClientStopped",
        "Neo.ClientError.Cluster.NotALeader",
        "Neo.ClientError.General.ForbiddenOnReadOnlyDatabase",
    }
)
_PERMANENT_FAULTS = frozenset({"Neo.DatabaseError.Statement.ExecutionFailed"})
"""Other faults of the database (a full disk, a store that closes) say nothing about the plan."""


def classified(error: BaseException, what: str) -> StrandlineError:
    """Our error for the driver's; the caller raises it from the original. `what` names the call, never its data."""
    if isinstance(error, _AWAY):
        return Outage(SERVICE, f"neo4j cannot be reached or refuses the login, while it was to {what}: {_brief(error)}")
    if isinstance(error, Neo4jError):
        code = error.code or ""
        if code in _AWAY_CODES:
            return Outage(SERVICE, f"neo4j is not available, while it was to {what}: {code}")
        fault = code.startswith("Neo.DatabaseError.") and code not in _PERMANENT_FAULTS
        if error.is_retryable() or code.startswith("Neo.TransientError.") or code in _RETRYABLE_CODES or fault:
            return Retryable(f"neo4j could not {what} this time: {code}")
        return Permanent(f"neo4j refuses to {what}: {code}: {_brief(error)}")
    if isinstance(error, DriverError) and not isinstance(error, ConfigurationError):
        # A connection that ended in mid-answer shows as one of many driver errors.
        return (
            Retryable(f"the neo4j driver could not {what}: {_brief(error)}")
            if error.is_retryable()
            else Permanent(f"the neo4j driver refuses to {what}: {_brief(error)}")
        )
    return Permanent(f"neo4j could not {what}: {_brief(error)}")


@contextmanager
def translated(what: str, deadline: timedelta) -> Iterator[None]:
    """Turns whatever the driver raises inside into our tree; a passed deadline is an outage: the server does not answer."""
    try:
        yield
    except (StrandlineError, asyncio.CancelledError):
        raise
    except TimeoutError as error:
        raise Outage(SERVICE, f"neo4j did not {what} within {deadline.total_seconds():g} s") from error
    except (Neo4jError, DriverError, OSError, ValueError, TypeError) as error:
        raise classified(error, what) from error


def _brief(error: BaseException) -> str:
    """The first words of the server's message. They may quote an id or a property's name, hardly more; texts are cut off."""
    message = getattr(error, "message", None) or str(error)
    return f"{type(error).__name__}: {str(message).splitlines()[0][:200] if message else ''}"
