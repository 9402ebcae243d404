from __future__ import annotations

from uuid import UUID

from pydantic import Field

from topics.records.base import Instant, Part, Record
from topics.records.common import RunState, StageState


class StageReport(Part):
    """How one stage of a run went."""

    stage: str
    state: StageState
    started_at: Instant
    finished_at: Instant | None = None
    attempts: int = Field(default=1, ge=1)
    error: str = ""


class RunEvent(Record):
    """One step of a run. Its `ce_id` is derived from run and step, so a repeat can be recognised; fold by highest
    state."""

    run_id: UUID
    state: RunState
    at: Instant
    stage: StageReport | None = None
    artifact_id: UUID | None = None
    seq: int | None = Field(default=None, ge=0, lt=2**63)
    fact_ids: tuple[UUID, ...] = ()
    """Facts created or restated, once written."""
    closed_fact_ids: tuple[UUID, ...] = ()
    entity_ids: tuple[UUID, ...] = ()
    error_code: str = ""
    error: str = ""
    """A sentence for people; never the text that was to be remembered."""
    accepted_at: Instant
    idempotency_key: str = ""
    source_type: str = ""
