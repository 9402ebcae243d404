"""Bodies of the HTTP API that are not receipts: errors, health, search. Shared by server, client and the OpenAPI document."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from strandline.receipts import Answer, Receipt
from topics.records import Instant


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


class FoundFact(Answer):
    """A fact with its times; true at the asked `as_of` as believed at `known_at`. Intervals are half-open, instants UTC."""

    id: UUID
    subject: str
    relation: str
    object: str
    description: str
    valid_at: Instant
    """When it became true."""
    invalid_at: Instant | None = None
    """When it stopped being true, as we know now."""
    stated_invalid_at: Instant | None = None
    """The end that the text itself gave."""
    created_at: Instant
    """When we came to know it."""
    expired_at: Instant | None = None
    """When we came to know that it had ended."""
    origin: str = ""
    """Where it is from: stated (the payload), model, rules, sentence."""
    source_ids: tuple[UUID, ...] = ()
    """Artifacts that state it, the oldest first."""


class SourceText(Answer):
    """A stored text, word for word."""

    artifact_id: UUID
    run_id: UUID
    seq: int
    text: str
    title: str = ""
    author: str = ""
    source_type: str = ""
    url: str = ""
    valid_at: Instant
    """The text's own time."""
    created_at: Instant
    """When we came to know it."""


class Hit(Answer):
    """One thing found, with the facts it stands for and the texts they are from."""

    kind: Literal["fact", "entity", "text"]
    id: UUID
    score: float
    """Only for order within this answer."""
    facts: tuple[FoundFact, ...] = ()
    sources: tuple[SourceText, ...] = ()


class SearchAnswer(Answer):
    """Hits, the best first, and the times they were judged at."""

    hits: tuple[Hit, ...]
    as_of: Instant
    known_at: Instant
    missing: tuple[str, ...] = ()
    """Services that were away: the answer has what the others found."""
