from __future__ import annotations

from uuid import UUID

from pydantic import Field

from topics.records.base import Instant, Record


class DeadLetter(Record):
    """A record that could not be handled for good, with all that a replay needs."""

    topic: str
    partition: int
    offset: int
    stage: str
    record_key: bytes | None
    record_value: bytes | None
    record_headers: tuple[tuple[str, bytes], ...] = ()
    error_code: str
    error: str
    attempts: int = Field(ge=1)
    run_id: UUID | None = None
    failed_at: Instant
