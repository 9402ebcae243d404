from __future__ import annotations

from uuid import UUID

from pydantic import Field

from topics.records.base import Instant, Part, Record
from topics.records.common import Chunk


class EntityMention(Part):
    """An entity as one text names it, before it is matched with what the graph knows."""

    name: str = Field(min_length=1)
    type: str = "other"
    description: str = ""


class FactStatement(Part):
    """A fact as one text states it: subject and object by the names in `entities`."""

    subject: str = Field(min_length=1)
    subject_type: str = "other"
    relation: str = Field(min_length=1)
    object: str = Field(min_length=1)
    object_type: str = "other"
    description: str = ""
    valid_at: Instant | None = None
    """When it became true; None = the text's reference time."""
    invalid_at: Instant | None = None
    """The end the text itself gives; None = open."""
    ends: bool = False
    """The text says that this is no longer so ("has left Acme"): closes what stands, states nothing new."""
    origin: str = "model"
    """stated (the payload), model, rules, or sentence (two names in one sentence; never closes anything)."""


class GraphWrite(Record):
    """What one text yields, ready to be decided against the graph; also sent with nothing in it, so that numbers have
    no hole."""

    run_id: UUID
    artifact_id: UUID
    seq: int = Field(ge=1, lt=2**63)
    text: str = ""
    """For the index's vectors; the graph has it already."""
    title: str = ""
    chunks: tuple[Chunk, ...] = ()
    valid_at: Instant
    accepted_at: Instant
    entities: tuple[EntityMention, ...] = ()
    statements: tuple[FactStatement, ...] = ()
    model_id: str = ""
    """Which model read the text; "" if none did."""
    failed: str = ""
    """Why extraction failed for good; the write then only moves the number on."""
