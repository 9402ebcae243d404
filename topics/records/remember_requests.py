from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from topics.records.base import Instant, Record
from topics.records.common import SourceObject, StatedFact


class RememberRequest(Record):
    """Somebody asks to remember one text. Accepted once this is on the log."""

    run_id: UUID
    idempotency_key: str = Field(pattern=r"^[A-Za-z0-9._:\-]{1,256}$")
    """With the user and the source type it is the identity of the save; a repeat gets the same run."""
    request_hash: str = ""
    """SHA-256 of all the fields the caller set: the same key with another hash is a conflict."""
    text: str = Field(min_length=1)
    title: str = ""
    kind: Literal["knowledge", "episode"] = "knowledge"
    reference_time: Instant
    """What "now" means in the text; relative dates count from it."""
    accepted_at: Instant
    session_id: str | None = None
    tags: tuple[str, ...] = ()
    source_type: str = "api"
    """api, cli, import, or a connector's name."""
    source: SourceObject | None = None
    author: str = ""
    """Who says "I" in the text; "" if unknown."""
    author_type: str = "person"
    stated_facts: tuple[StatedFact, ...] = ()
    needs_model: bool = True
    """False for structured payloads: the stated facts say all."""
