"""Bodies of the HTTP API that are not receipts: errors, health, search. Shared by server, client and the OpenAPI document."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from graph.read.answers import FoundFact, Hit, SearchPage, SourceText
from strandline.receipts import Answer, Receipt

__all__ = ["ErrorBody", "FoundFact", "Health", "Hit", "Live", "PartHealth", "Ready", "SearchPage", "SourceText"]


class ErrorBody(Answer):
    """The body of every answer that is not 2xx."""

    error: str
    """What happened and what to do, in a sentence for people."""
    code: str
    """Stable; the same in logs, run events and dead letters."""
    field: str | None = None
    """The field or parameter that breaks a rule."""
    service: str | None = None
    """The service that is away."""
    idempotency_key: str | None = None
    """Send the request again under this key: if it did arrive, it is not remembered twice."""
    receipt: Receipt | None = None
    """What became of the run, where there is one."""


class PartHealth(Answer):
    """How one service is. `error` says why it is not."""

    name: str
    ok: bool
    error: str = ""


class Health(Answer):
    """`degraded`: it serves, but a part is away."""

    status: Literal["ok", "degraded"]
    version: str
    parts: tuple[PartHealth, ...] = Field(default=())


class Live(Answer):
    """The process answers. Says nothing of any service, so that an outage elsewhere never restarts this process."""

    status: Literal["live"] = "live"


class Ready(Answer):
    """Requests are accepted: the log answers."""

    status: Literal["ready"] = "ready"
