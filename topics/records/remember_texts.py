from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from topics.records.base import Instant, Record
from topics.records.common import Chunk, SourceObject, StatedFact


class RememberText(Record):
    """One admitted text: numbered, stored and searchable by its words; waits for extraction."""

    run_id: UUID
    artifact_id: UUID
    seq: int = Field(ge=1, lt=2**63)
    """The dataset's running number: 1, 2, 3 … without a hole."""
    text: str
    title: str = ""
    kind: Literal["knowledge", "episode"] = "knowledge"
    chunks: tuple[Chunk, ...] = ()
    """Pieces for the model and the index; () = the text is one piece."""
    valid_at: Instant
    """The request's reference time; "tomorrow" in the text counts from here."""
    accepted_at: Instant
    author: str = ""
    author_type: str = "person"
    source: SourceObject | None = None
    stated_facts: tuple[StatedFact, ...] = ()
    needs_model: bool = True
    redelivered: bool = False
    """The text had its number before: what follows may be done already."""
