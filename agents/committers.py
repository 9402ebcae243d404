"""COMMITTERS, the table of what is written in groups, and the Deps made from it: every stage's verb is a committer's `submit`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.breaker import Breakers, CommitterBreaker
from agents.deps import Deps
from agents.group_commit import GroupCommitter
from agents.metrics import CommitterMetrics, Metrics
from agents.models.base import Embedder, LanguageModel, Vectors
from graph.protocols import GraphStore, IndexRow, RunStore, VectorIndex
from topics.clock import Clock
from topics.records import RunEvent


@dataclass(frozen=True, slots=True)
class Committer:
    """One row of COMMITTERS."""

    name: str
    service: str
    """Whose outage it waits for."""
    in_flight: int = 1
    """Groups at once; more than one only where their order does not matter."""
    cap: int = 64
    gather: timedelta = timedelta(0)
    deadline: timedelta | None = timedelta(seconds=15)
    """Of one group; past it the service counts as away. None where the client has a deadline of its own."""
    per_dataset: bool = False
    """One plan of a dataset a group, in dataset order."""


COMMITTERS = {
    row.name: row
    for row in (
        Committer("admit", "neo4j", per_dataset=True),
        Committer("candidates", "neo4j"),
        Committer("apply", "neo4j", per_dataset=True),
        # A remote embedder answers many requests at once, by its own time-out; the local one takes what time it needs.
        Committer("embed", "embedder", in_flight=4, cap=8, deadline=None),
        # Nobody waits for the index: a run is found by its words already. Larger batches cost Weaviate less.
        Committer("index", "weaviate", gather=timedelta(milliseconds=50), cap=256),
        # Live states come from the topic itself. Half a second lets most events of a run be folded before its row is written.
        Committer("runs", "neo4j", gather=timedelta(milliseconds=500), cap=256),
    )
}


@dataclass(frozen=True, slots=True)
class Stores:
    """What the committers write to."""

    graph: GraphStore
    runs: RunStore
    index: VectorIndex


class RecentVectors:
    """Vectors of texts, in slices: a long document's turn is no reason for others to wait, and what a turn that ran out of time had computed is there
    for its next try."""

    SLICE_TEXTS = 16
    KEPT = 4096
    """More than the pieces of the longest text; about 6 MB at 384 numbers a vector."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._kept: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self.submit: Callable[[Sequence[str]], Awaitable[Vectors]] = embedder.embed

    async def of(self, texts: Sequence[str]) -> Vectors:
        """(n, dimension) float32, in the order of the texts."""
        found = {text: self._kept[text] for text in texts if text in self._kept}
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        # One slice after the other: between two of them other lanes have their turn.
        for start in range(0, len(missing), self.SLICE_TEXTS):
            part = missing[start : start + self.SLICE_TEXTS]
            found.update(zip(part, await self.submit(part), strict=True))
        if not texts:
            return np.zeros((0, self._embedder.dimension), np.float32)
        return np.stack([found[text] for text in texts])

    async def write(self, plans: Sequence[Sequence[str]]) -> list[Vectors]:
        """One request for all plans; kept also when nobody waits for the answer any more."""
        made = await self._embedder.embed([text for plan in plans for text in plan])
        ends = accumulate((len(plan) for plan in plans), initial=0)
        answers = [made[start:end] for start, end in pairwise(ends)]
        for plan, vectors in zip(plans, answers, strict=True):
            self._kept.update(zip(plan, vectors, strict=True))
        while len(self._kept) > self.KEPT:
            self._kept.popitem(last=False)
        return answers


@asynccontextmanager
async def committing(
    stores: Stores,
    model: LanguageModel,
    embedder: Embedder,
    *,
    clock: Clock,
    log_id: str,
    metrics: Metrics,
    breakers: Breakers,
) -> AsyncIterator[Deps]:
    """Deps whose verbs are group-committed; what was submitted is settled before the block ends."""
    async with AsyncExitStack() as closing:

        def committer(name: str, write: Any) -> GroupCommitter[Any, Any]:
            row = COMMITTERS[name]
            made: GroupCommitter[Any, Any] = GroupCommitter(
                write,
                key=(lambda plan: plan.key) if row.per_dataset else None,
                service=row.service,
                cap=row.cap,
                in_flight=row.in_flight,
                gather=row.gather,
                deadline=row.deadline,
                observers=(CommitterMetrics(metrics, name), CommitterBreaker(breakers.of(row.service))),
            )
            closing.push_async_callback(made.close)
            return made

        vectors = RecentVectors(embedder)

        async def index(plans: Sequence[Sequence[IndexRow]]) -> list[None]:
            await stores.index.put([row for plan in plans for row in plan])
            return [None] * len(plans)

        async def runs(plans: Sequence[Sequence[RunEvent]]) -> list[None]:
            await stores.runs.record_runs([event for plan in plans for event in plan])
            return [None] * len(plans)

        vectors.submit = committer("embed", vectors.write).submit
        yield Deps(
            clock=clock,
            log_id=log_id,
            model=model,
            embedder=embedder,
            store=stores.graph,
            admit=committer("admit", stores.graph.admit).submit,
            candidates=committer("candidates", stores.graph.candidates).submit,
            apply=committer("apply", stores.graph.apply).submit,
            embed=vectors.of,
            index=committer("index", index).submit,
            record_runs=committer("runs", runs).submit,
        )
