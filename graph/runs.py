"""Folds the events of a run into one row. The events may come in any order and any number of times: the row is the same.

Each field is joined by a rule that does not care for order (the furthest state, the earliest time, the union of ids), so the fold is commutative,
associative and idempotent; every RunStore uses this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

from graph.model import Id, RunView
from topics.keys import derived_id
from topics.records import RunEvent, StageReport

STATE_RANK: Mapping[str, int] = MappingProxyType(
    {"accepted": 0, "queryable": 1, "enriching": 2, "complete": 3, "failed": 3, "rejected": 3}
)
"""accepted → queryable → enriching → one of three ends (features.md, Decision 4)."""

FINAL_RANK = 3

_STAGE_RANK = {"started": 0, "failed": 1, "succeeded": 2}


@dataclass(frozen=True, slots=True)
class FoldedRun:
    """A run as stored: the view, and when its state was reached, by which the first of two ends is told."""

    view: RunView
    state_at: datetime
    stages: Mapping[str, StageReport] = field(default_factory=dict)


def run_key(user_id: str, run_id: Id) -> str:
    """The id of the row. The user is in it: nobody's events reach another user's run."""
    return f"{derived_id('user', user_id)}/{run_id}"


def folded(event: RunEvent) -> FoldedRun:
    """The row that one event alone makes."""
    stages = {} if event.stage is None else {event.stage.stage: event.stage}
    view = RunView(
        run_id=str(event.run_id),
        user_id=event.user_id,
        dataset=event.dataset,
        state=event.state,
        accepted_at=event.accepted_at,
        updated_at=event.at,
        source_type=event.source_type,
        idempotency_key=event.idempotency_key,
        artifact_id=None if event.artifact_id is None else str(event.artifact_id),
        seq=event.seq,
        fact_ids=_sorted(event.fact_ids),
        closed_fact_ids=_sorted(event.closed_fact_ids),
        entity_ids=_sorted(event.entity_ids),
        error_code=event.error_code,
        error=event.error,
        stages=_listed(stages),
    )
    return FoldedRun(view, event.at, stages)


def joined(one: FoldedRun, other: FoldedRun) -> FoldedRun:
    """Both of a run's rows as one."""
    a, b = one.view, other.view
    leading = min((one, other), key=_precedence)
    stages = dict(one.stages)
    for name, report in other.stages.items():
        stages[name] = _joined_stage(stages[name], report) if name in stages else report
    view = replace(
        leading.view,
        dataset=min(a.dataset, b.dataset),
        accepted_at=min(a.accepted_at, b.accepted_at),
        updated_at=max(a.updated_at, b.updated_at),
        source_type=_either(a.source_type, b.source_type),
        idempotency_key=_either(a.idempotency_key, b.idempotency_key),
        artifact_id=_either(a.artifact_id or "", b.artifact_id or "") or None,
        seq=min((seq for seq in (a.seq, b.seq) if seq is not None), default=None),
        fact_ids=_union(a.fact_ids, b.fact_ids),
        closed_fact_ids=_union(a.closed_fact_ids, b.closed_fact_ids),
        entity_ids=_union(a.entity_ids, b.entity_ids),
        stages=_listed(stages),
    )
    return FoldedRun(view, leading.state_at, stages)


def _precedence(run: FoldedRun) -> tuple[Any, ...]:
    """The furthest state leads and brings its error; of one rank the earliest, since a final state stays."""
    view = run.view
    return (-STATE_RANK[view.state], run.state_at, view.state, view.error_code, view.error)


def _joined_stage(one: StageReport, other: StageReport) -> StageReport:
    """A stage that was repeated: from its first start to its first success; its attempts are the most that were told."""
    leading = min((one, other), key=_stage_precedence)
    return leading.model_copy(
        update={
            "started_at": min(one.started_at, other.started_at),
            "attempts": max(one.attempts, other.attempts),
        }
    )


def _stage_precedence(report: StageReport) -> tuple[Any, ...]:
    return (
        -_STAGE_RANK[report.state],
        report.finished_at is None,
        report.finished_at or report.started_at,
        report.error,
    )


def _listed(stages: Mapping[str, StageReport]) -> tuple[Mapping[str, object], ...]:
    ordered = sorted(stages.values(), key=lambda report: (report.started_at, report.stage))
    return tuple(report.model_dump(mode="json") for report in ordered)


def _sorted(ids: tuple[UUID, ...]) -> tuple[Id, ...]:
    return tuple(sorted({str(id_) for id_ in ids}))


def _union(one: tuple[Id, ...], other: tuple[Id, ...]) -> tuple[Id, ...]:
    return tuple(sorted({*one, *other}))


def _either(one: str, other: str) -> str:
    """Events of a run agree; should they not, the choice does not hang on their order."""
    return min(one, other) if one and other else one or other
