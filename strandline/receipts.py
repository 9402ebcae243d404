"""What callers are told of their runs, the same at every edge: HTTP, command line, Python."""

from __future__ import annotations

from uuid import UUID

from pydantic import BaseModel, ConfigDict, TypeAdapter

from graph.model import RunView
from topics.records import Instant, RunEvent, RunState, StageReport

QUERYABLE_STATES: frozenset[RunState] = frozenset({"queryable", "enriching", "complete"})
FINAL_STATES: frozenset[RunState] = frozenset({"complete", "failed", "rejected"})

_NOTES: dict[RunState, str] = {
    "accepted": "The text is on the log and will be remembered; it cannot be found yet.",
    "queryable": "The text is stored and found by its words; its facts are being extracted.",
    "enriching": "The text has been read; its facts are being written, then indexed.",
    "complete": "All is done.",
    "failed": "Something could not be done and was put aside; see `error`. What was stored before stays.",
    "rejected": "The request was refused after it had been accepted; see `error`. Nothing of it was stored.",
}

_STATE: TypeAdapter[RunState] = TypeAdapter(RunState)


class Answer(BaseModel):
    """Frozen; fields that a newer server added are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Receipt(Answer):
    """What became of a request so far."""

    run_id: UUID
    status: RunState
    durable: bool
    """The request is on the log: it survives a crash of any process."""
    queryable: bool
    """Search finds it by its words."""
    idempotency_key: str
    """The caller's, or the one made for it: sending the same request under it again is the same run."""
    artifact_id: UUID | None = None
    """The stored text; none before it is queryable."""
    seq: int | None = None
    """The text's running number in its dataset."""
    fact_ids: tuple[UUID, ...] = ()
    """Facts created or restated; empty before `enriching`."""
    closed_fact_ids: tuple[UUID, ...] = ()
    """Facts that ended because of this text."""
    entity_ids: tuple[UUID, ...] = ()
    error_code: str = ""
    error: str = ""
    """Why it failed or was rejected, in a sentence."""
    note: str = ""
    """What the status means, for people."""


class Run(Receipt):
    """A run as its events tell it; `stages` in order of their start."""

    user_id: str
    dataset: str
    source_type: str
    accepted_at: Instant
    updated_at: Instant
    stages: tuple[StageReport, ...] = ()


class RunPage(Answer):
    """Runs, the newest first. `next_cursor` asks for the page after this one; "" at the end."""

    runs: tuple[Run, ...]
    next_cursor: str = ""


class RunUpdate(RunEvent):
    """One event of a run. It may come twice, always with the same `event_id`."""

    event_id: UUID


def run_of(view: RunView) -> Run:
    """The public form of a folded run."""
    state = _STATE.validate_python(view.state)
    return Run(
        run_id=UUID(view.run_id),
        status=state,
        durable=True,
        queryable=state in QUERYABLE_STATES or (state == "failed" and view.artifact_id is not None),
        idempotency_key=view.idempotency_key,
        artifact_id=None if view.artifact_id is None else UUID(view.artifact_id),
        seq=view.seq,
        fact_ids=tuple(map(UUID, view.fact_ids)),
        closed_fact_ids=tuple(map(UUID, view.closed_fact_ids)),
        entity_ids=tuple(map(UUID, view.entity_ids)),
        error_code=view.error_code,
        error=view.error,
        note=_NOTES[state],
        user_id=view.user_id,
        dataset=view.dataset,
        source_type=view.source_type,
        accepted_at=view.accepted_at,
        updated_at=view.updated_at,
        stages=tuple(StageReport.model_validate(stage) for stage in view.stages),
    )


def receipt_of(view: RunView) -> Receipt:
    """The receipt of a folded run."""
    return Receipt.model_validate(run_of(view).model_dump(include=set(Receipt.model_fields)))
