from __future__ import annotations

from uuid import UUID

from pydantic import Field

from topics.records.base import Instant, Part, Record
from topics.records.common import ChangeKind, Chunk


class EntityChange(Part):
    """An entity that a write created or mentioned, in its state after the write."""

    id: UUID
    name: str
    type: str
    description: str = ""
    created: bool = False


class FactChange(Part):
    """A fact that a write created, restated or closed, in its state after the write."""

    id: UUID
    change: ChangeKind
    subject_id: UUID
    subject: str
    relation: str
    object_id: UUID
    object: str
    description: str
    valid_at: Instant
    invalid_at: Instant | None = None
    created_at: Instant
    expired_at: Instant | None = None


class GraphChange(Record):
    """All that one text changed in the graph, in one record; sent after the transaction, repeated with the same id if
    in doubt."""

    run_id: UUID
    artifact_id: UUID
    seq: int = Field(ge=1, lt=2**63)
    applied_at: Instant
    """The transaction's knowledge time; grows with `seq` within a dataset."""
    text: str = ""
    title: str = ""
    chunks: tuple[Chunk, ...] = ()
    valid_at: Instant
    accepted_at: Instant
    entities: tuple[EntityChange, ...] = ()
    facts: tuple[FactChange, ...] = ()
    vectors: dict[str, str] = Field(default_factory=dict)
    """Row id → little-endian float32, base64. Missing when the record was rebuilt from the store: the indexer then
    computes them."""
    vector_model: str = ""
    failed: str = ""
