"""Weaviate's errors as ours. Whether a try may be repeated is decided here and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import grpc  # type: ignore[import-untyped]
from weaviate.exceptions import (
    UnexpectedStatusCodeError,
    WeaviateBaseError,
    WeaviateConnectionError,
    WeaviateGRPCUnavailableError,
    WeaviateStartUpError,
    WeaviateTimeoutError,
)

from topics.errors import Outage, Permanent, Retryable, StrandlineError

SERVICE = "weaviate"

_AWAY = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        # Refused credentials are the operator's to mend; no record may be given up for them.
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.PERMISSION_DENIED,
    }
)
_PERMANENT = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.DATA_LOSS,
    }
)
_OPERATOR_WORDS = ("unauthorized", "forbidden", "not present in schema", "could not find class")
"""A refused key or a lost schema says nothing about the row: a person mends it, and nothing may be given up meanwhile."""

_REFUSED_WORDS = ("vector lengths don't match", "vector dim", "invalid", "no such prop")
"""Weaviate says most things as UNKNOWN or without a code; these name a row or request that no repetition mends."""


class UnknownTenant(Permanent):
    """The dataset has no row in this collection yet."""

    code: ClassVar[str] = "unknown_tenant"


def of_message(message: str, what: str) -> StrandlineError:
    """The class of an error that has only words. In doubt Retryable: attempts are counted, a lost row is not."""
    words = message.lower()
    if "tenant" in words and "not found" in words:
        return UnknownTenant(f"weaviate could not {what}: the dataset has no rows")
    if any(one in words for one in _OPERATOR_WORDS):
        return Outage(
            SERVICE,
            f"weaviate refuses the key or lost its collections (a restart makes them), while it was to {what}: {_brief(message)}",
        )
    if any(one in words for one in _REFUSED_WORDS):
        return Permanent(f"weaviate refuses to {what}: {_brief(message)}")
    return Retryable(f"weaviate could not {what} this time: {_brief(message)}")


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Turns whatever the gRPC channel or the vendor's client raises inside into our tree."""
    try:
        yield
    except grpc.aio.AioRpcError as error:
        raise _of_rpc(error, what) from error
    except (
        WeaviateConnectionError,
        WeaviateGRPCUnavailableError,
        WeaviateStartUpError,
        WeaviateTimeoutError,
        OSError,
    ) as error:
        raise Outage(SERVICE, f"weaviate cannot be reached, while it was to {what}: {_brief(str(error))}") from error
    except UnexpectedStatusCodeError as error:
        if error.status_code in (401, 403) or error.status_code >= 500:
            raise Outage(SERVICE, f"weaviate answers {error.status_code}, while it was to {what}") from error
        raise of_message(str(error), what) from error
    except WeaviateBaseError as error:
        raise of_message(str(error), what) from error


def _of_rpc(error: grpc.aio.AioRpcError, what: str) -> StrandlineError:
    code, details = error.code(), error.details() or ""
    if code in _AWAY:
        return Outage(SERVICE, f"weaviate cannot be reached, while it was to {what}: {code.name}: {_brief(details)}")
    if code in _PERMANENT and not any(one in details.lower() for one in _OPERATOR_WORDS):
        return Permanent(f"weaviate refuses to {what}: {code.name}: {_brief(details)}")
    return of_message(details, what)


def _brief(message: str) -> str:
    return " ".join(message.split())[:200]
