"""RunStore on Neo4j. A batch is one transaction: lock the rows, fold the events in, write the rows back."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from graph.model import Id, RunView
from graph.neo4j.cypher import statement
from graph.neo4j.database import Database
from graph.neo4j.rows import Properties, instant, written
from graph.runs import FoldedRun, folded, joined, run_key
from topics.errors import Refused
from topics.keys import DatasetKey, derived_id
from topics.records import RunEvent, StageReport

_LOCK = statement("runs", "lock_runs")
_WRITE = statement("runs", "write_runs")
_RUN = statement("runs", "run")
_OF_USER = statement("runs", "runs_of_user")
_OF_DATASET = statement("runs", "runs_of_dataset")

_AFTER_ALL = "~"
"""Sorts after every digit and letter of an order key."""


class Neo4jRunStore:
    """RunStore. The schema must be up to date (graph/neo4j/schema.py)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record_runs(self, events: Sequence[RunEvent]) -> None:
        if not events:
            return
        told: dict[str, FoldedRun] = {}
        for event in events:
            key = run_key(event.user_id, str(event.run_id))
            told[key] = joined(told[key], folded(event)) if key in told else folded(event)
        async with self._database.transaction("record runs") as tx:
            stored = {row["id"]: row["run"] for row in await tx.rows(_LOCK, ids=sorted(told))}
            runs = {key: joined(_run(stored[key]), run) if "state" in stored[key] else run for key, run in told.items()}
            await tx.one(_WRITE, runs=[_argument(key, run) for key, run in runs.items()])

    async def run(self, user_id: str, run_id: Id) -> RunView | None:
        rows = await self._database.read("read a run", _RUN, id=run_key(user_id, run_id))
        return _run(rows[0]["run"]).view if rows and "state" in rows[0]["run"] else None

    async def runs(
        self, user_id: str, *, dataset: str | None = None, state: str | None = None, before: str = "", limit: int = 50
    ) -> tuple[Sequence[RunView], str]:
        prefix = _user_prefix(user_id) if dataset is None else _dataset_prefix(DatasetKey(user_id, dataset))
        rows = await self._database.read(
            "read runs",
            _OF_USER if dataset is None else _OF_DATASET,
            low=prefix,
            high=prefix + (_decode(before) if before else _AFTER_ALL),
            state=state,
            limit=limit + 1,
        )
        views = [_run(row["run"]).view for row in rows]
        page = views[:limit]
        return page, _encode(_order(page[-1])) if len(views) > limit and page else ""


# ── order and cursor ─────────────────────────────────────────────────────────────────────────────────────────────────


def _user_prefix(user_id: str) -> str:
    return f"{derived_id('user', user_id)}/"


def _dataset_prefix(key: DatasetKey) -> str:
    return f"{key.dataset_id}/"


def _order(run: RunView) -> str:
    """Of fixed width up to the id, so that text sorts as time does."""
    return f"{run.accepted_at.astimezone(UTC):%Y%m%dT%H%M%S.%f}/{run.run_id}"


def _encode(order: str) -> str:
    return base64.urlsafe_b64encode(order.encode()).decode().rstrip("=")


def _decode(cursor: str) -> str:
    try:
        order = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        at, _, run_id = order.partition("/")
        datetime.strptime(at, "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC)
    except (ValueError, binascii.Error):
        at, run_id = "", ""
    if not run_id:
        raise Refused("`before` is no cursor: take the one that the previous page gave", field="before")
    return f"{at}/{run_id}"


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _argument(key: str, run: FoldedRun) -> Properties:
    view = run.view
    dataset = DatasetKey(view.user_id, view.dataset)
    stages = {name: report.model_dump(mode="json") for name, report in run.stages.items()}
    order = _order(view)
    properties = {
        "id": key,
        "dataset_id": dataset.dataset_id,
        "name": f"run {view.run_id[:8]}",
        "run_id": view.run_id,
        "user_id": view.user_id,
        "dataset": view.dataset,
        "state": view.state,
        "source_type": view.source_type,
        "idempotency_key": view.idempotency_key,
        "artifact_id": view.artifact_id,
        "seq": view.seq,
        "fact_ids": list(view.fact_ids),
        "closed_fact_ids": list(view.closed_fact_ids),
        "entity_ids": list(view.entity_ids),
        "error_code": view.error_code,
        "error": view.error,
        "stages": json.dumps(stages, ensure_ascii=False),
        # As text beside the times: read back exactly, and without the cost of a conversion.
        "times": [written(at) for at in (view.accepted_at, view.updated_at, run.state_at)],
        "by_user": _user_prefix(view.user_id) + order,
        "by_dataset": _dataset_prefix(dataset) + order,
    }
    return {
        "id": key,
        "accepted_at": written(view.accepted_at),
        "updated_at": written(view.updated_at),
        "properties": properties,
    }


def _run(row: Mapping[str, Any]) -> FoldedRun:
    stages = {name: StageReport.model_validate(report) for name, report in json.loads(row["stages"]).items()}
    accepted_at, updated_at, state_at = (instant(text) for text in row["times"])
    ordered = sorted(stages.values(), key=lambda report: (report.started_at, report.stage))
    view = RunView(
        run_id=row["run_id"],
        user_id=row["user_id"],
        dataset=row["dataset"],
        state=row["state"],
        accepted_at=accepted_at,
        updated_at=updated_at,
        source_type=row["source_type"],
        idempotency_key=row["idempotency_key"],
        artifact_id=row.get("artifact_id"),
        seq=row.get("seq"),
        fact_ids=tuple(row["fact_ids"]),
        closed_fact_ids=tuple(row["closed_fact_ids"]),
        entity_ids=tuple(row["entity_ids"]),
        error_code=row["error_code"],
        error=row["error"],
        stages=tuple(report.model_dump(mode="json") for report in ordered),
    )
    return FoldedRun(view, state_at, stages)
