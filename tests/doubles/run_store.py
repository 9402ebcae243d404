"""The run log as rows in memory, for tests that need no graph."""

from __future__ import annotations

from collections.abc import Sequence

from graph.model import Id, RunView
from graph.runs import FoldedRun, folded, joined, run_key
from topics.errors import Outage, Refused
from topics.records import RunEvent


class MemoryRunStore:
    """See `graph.protocols.RunStore`. While `away` is set every call is an outage."""

    def __init__(self) -> None:
        self._runs: dict[str, FoldedRun] = {}
        self.away = False

    async def record_runs(self, events: Sequence[RunEvent]) -> None:
        self._require()
        for event in events:
            key, run = run_key(event.user_id, str(event.run_id)), folded(event)
            self._runs[key] = joined(self._runs[key], run) if key in self._runs else run

    async def run(self, user_id: str, run_id: Id) -> RunView | None:
        self._require()
        run = self._runs.get(run_key(user_id, run_id))
        return None if run is None else run.view

    async def runs(
        self, user_id: str, *, dataset: str | None = None, state: str | None = None, before: str = "", limit: int = 50
    ) -> tuple[Sequence[RunView], str]:
        self._require()
        if before and not before.isdigit():
            raise Refused("the cursor is none of ours", field="cursor")
        start = int(before or 0)
        found = [
            view
            for view in sorted(
                (run.view for run in self._runs.values()),
                key=lambda view: (view.accepted_at, view.run_id),
                reverse=True,
            )
            if view.user_id == user_id and dataset in (None, view.dataset) and state in (None, view.state)
        ]
        end = start + limit
        return found[start:end], str(end) if end < len(found) else ""

    def _require(self) -> None:
        if self.away:
            raise Outage("neo4j", "the graph is away")
