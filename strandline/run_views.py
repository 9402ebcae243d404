"""Folding: a run as its events tell it. Any order, any number of times, the same result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from graph.model import RunView
from topics.records import RunEvent, StageReport

STATE_ORDER: Final[Mapping[str, int]] = {
    "accepted": 0,
    "queryable": 1,
    "enriching": 2,
    "complete": 3,
    "failed": 3,
    "rejected": 3,
}
"""How far a run is; the last three are final."""

_STAGE_ORDER: Final[Mapping[str, int]] = {"started": 0, "succeeded": 1, "failed": 1}


def view_of(event: RunEvent) -> RunView:
    """What one event alone tells."""
    return RunView(
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
        fact_ids=tuple(map(str, event.fact_ids)),
        closed_fact_ids=tuple(map(str, event.closed_fact_ids)),
        entity_ids=tuple(map(str, event.entity_ids)),
        error_code=event.error_code,
        error=event.error,
        stages=() if event.stage is None else (event.stage.model_dump(mode="json"),),
    )


def merge(one: RunView, other: RunView) -> RunView:
    """Both views of one run in one: the furthest state wins (of two final ones the earlier), stages are merged by name."""
    front, back = (one, other) if _rank(one) >= _rank(other) else (other, one)
    return replace(
        front,
        accepted_at=min(front.accepted_at, back.accepted_at),
        updated_at=max(front.updated_at, back.updated_at),
        source_type=front.source_type or back.source_type,
        idempotency_key=front.idempotency_key or back.idempotency_key,
        artifact_id=front.artifact_id or back.artifact_id,
        seq=back.seq if front.seq is None else front.seq,
        fact_ids=front.fact_ids or back.fact_ids,
        closed_fact_ids=front.closed_fact_ids or back.closed_fact_ids,
        entity_ids=front.entity_ids or back.entity_ids,
        stages=_merged_stages(front.stages, back.stages),
    )


def _rank(view: RunView) -> tuple[int, float]:
    return STATE_ORDER[view.state], -view.updated_at.timestamp()


def _merged_stages(
    some: tuple[Mapping[str, object], ...], others: tuple[Mapping[str, object], ...]
) -> tuple[Mapping[str, object], ...]:
    by_name: dict[str, StageReport] = {}
    for report in map(StageReport.model_validate, (*some, *others)):
        known = by_name.setdefault(report.stage, report)
        by_name[report.stage] = _later(known, report)
    return tuple(report.model_dump(mode="json") for report in sorted(by_name.values(), key=_start))


def _later(one: StageReport, other: StageReport) -> StageReport:
    """The report that says more, from the first start: a finished one before a started one, then the one with more attempts."""
    front = max(
        one, other, key=lambda report: (_STAGE_ORDER[report.state], report.attempts, report.state == "succeeded")
    )
    return front.model_copy(update={"started_at": min(one.started_at, other.started_at)})


def _start(report: StageReport) -> tuple[datetime, str]:
    return report.started_at, report.stage
