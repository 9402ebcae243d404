"""What a stage's host puts on the log for a turn, beside the stage's own sends: run events and dead letters. Ids are derived: a repeat has the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from agents.contract import Delivery, Done, GaveUp, Result, RunNote
from topics import ids
from topics.envelope import Incoming, Outgoing, header
from topics.errors import Permanent, Undecodable
from topics.keys import DatasetKey, derived_id
from topics.records import DeadLetter, Record, RunEvent, StageReport
from topics.trace import child_of

UNKNOWN = DatasetKey("unknown", "unknown")
"""Whose dead letters are those whose key names nobody."""


@dataclass(slots=True)
class Work:
    """One record of a turn on its way: `delivery` if it could be decoded, `result` once the stage or its failure gave one."""

    incoming: Incoming
    delivery: Delivery[Any] | None = None
    result: Result | None = None
    attempts: int = 1
    traceparent: str = field(init=False)

    def __post_init__(self) -> None:
        self.traceparent = child_of(self.incoming.traceparent)

    @property
    def where(self) -> str:
        return f"{self.incoming.topic}/{self.incoming.partition}/{self.incoming.offset}"

    @property
    def key(self) -> DatasetKey:
        """The record's owner, from its key alone if it cannot be decoded; UNKNOWN if that cannot be either."""
        if self.delivery is not None:
            return DatasetKey(self.delivery.record.user_id, self.delivery.record.dataset)
        try:
            return DatasetKey.decode(self.incoming.key)
        except Undecodable:
            return UNKNOWN


class Publisher:
    """Makes the records of one stage's turns."""

    def __init__(self, stage: str, log_id: str) -> None:
        self._stage = stage
        self._log_id = log_id

    def started(self, work: Work, started_at: datetime, now: datetime) -> Iterator[Outgoing]:
        """That the stage works on it; nothing for a record that belongs to no run. The state is the least: folding takes the furthest."""
        named = _run_of(work)
        if named is not None:
            report = StageReport(stage=self._stage, state="started", started_at=started_at)
            note = RunNote(run_id=named[0], accepted_at=named[1], state="accepted")
            yield self._event(work, note, report, now)

    def finished(self, work: Work, started_at: datetime, now: datetime) -> Iterator[Outgoing]:
        """All that goes onto the log once the record has its result: the stage's sends, the dead letter if it gave up, the run event."""
        result = work.result
        assert result is not None
        for outgoing in result.sends:
            yield outgoing if outgoing.traceparent else replace(outgoing, traceparent=work.traceparent)
        note = result.note
        if isinstance(result, GaveUp):
            yield self.dead_letter(work, result.error, now)
            note = _failed_note(work, result)
        if note is not None:
            yield self._event(work, note, self._report(work, result, started_at, now), now)

    def dead_letter(self, work: Work, error: Permanent, now: datetime, *, with_value: bool = True) -> Outgoing:
        """The record with its original bytes, and why it failed. Without the value only if that is too large for the topic."""
        incoming, key, named = work.incoming, work.key, _run_of(work)
        letter = DeadLetter(
            user_id=key.user_id,
            dataset=key.dataset,
            topic=incoming.topic,
            partition=incoming.partition,
            offset=incoming.offset,
            stage=self._stage,
            record_key=incoming.key,
            record_value=incoming.value if with_value else None,
            record_headers=incoming.headers if with_value else (),
            error_code=error.code,
            error=str(error) if with_value else f"(bytes left out, too large for a dead letter) {error}",
            attempts=work.attempts,
            run_id=named[0] if named is not None else _run_in_headers(incoming),
            failed_at=now,
        )
        place = (incoming.topic, str(incoming.partition), str(incoming.offset))
        return Outgoing(
            topic="dead.letters",
            record=letter,
            id=derived_id("dead-letter", self._log_id, *place, self._stage),
            sender=self._stage,
            time=now,
            subject=str(letter.run_id or ""),
            traceparent=work.traceparent,
        )

    def _report(self, work: Work, result: Result, started_at: datetime, now: datetime) -> StageReport:
        return StageReport(
            stage=self._stage,
            state="succeeded" if isinstance(result, Done) else "failed",
            started_at=started_at,
            finished_at=now,
            attempts=work.attempts,
            error="" if isinstance(result, Done) else str(result.error),
        )

    def _event(self, work: Work, note: RunNote, report: StageReport, now: datetime) -> Outgoing:
        key = work.key
        event = RunEvent(
            user_id=key.user_id,
            dataset=key.dataset,
            run_id=note.run_id,
            state=note.state,
            at=now,
            stage=report,
            artifact_id=note.artifact_id,
            seq=note.seq,
            fact_ids=note.fact_ids,
            closed_fact_ids=note.closed_fact_ids,
            entity_ids=note.entity_ids,
            error_code=note.error_code,
            error=note.error,
            accepted_at=note.accepted_at,
            idempotency_key=note.idempotency_key,
            source_type=note.source_type,
        )
        return Outgoing(
            topic="remember.runs",
            record=event,
            id=ids.run_event_id(note.run_id, self._stage, report.state),
            sender=self._stage,
            time=now,
            subject=str(note.run_id),
            sequence=note.seq,
            traceparent=work.traceparent,
        )


def _run_of(work: Work) -> tuple[UUID, datetime] | None:
    """(run, accepted at) as the record itself names them; None for a record of no run, or undecodable."""
    record: Record | None = work.delivery.record if work.delivery is not None else None
    run_id, accepted_at = getattr(record, "run_id", None), getattr(record, "accepted_at", None)
    if isinstance(run_id, UUID) and isinstance(accepted_at, datetime):
        return run_id, accepted_at
    return None


def _run_in_headers(incoming: Incoming) -> UUID | None:
    try:
        return UUID(header(incoming.headers, "ce_subject"))
    except ValueError:
        return None


def _failed_note(work: Work, result: GaveUp) -> RunNote | None:
    note = result.note
    if note is None:
        named = _run_of(work)
        if named is None:
            return None
        note = RunNote(run_id=named[0], accepted_at=named[1], state="failed")
    return replace(note, error_code=note.error_code or result.error.code, error=note.error or str(result.error))
