"""COMMITTERS, the table of what is written in groups, and the Deps made from it: every stage's verb is a committer's `submit`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

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
    per_dataset: bool = False
    """One plan of a dataset a group, in dataset order."""


COMMITTERS = {
    row.name: row
    for row in (
        Committer("admit", "neo4j", per_dataset=True),
        Committer("candidates", "neo4j"),
        Committer("apply", "neo4j", per_dataset=True),
        # A remote embedder answers many requests at once; the local one has a single thread anyway.
        Committer("embed", "embedder", in_flight=4),
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
                observers=(CommitterMetrics(metrics, name), CommitterBreaker(breakers.of(row.service))),
            )
            closing.push_async_callback(made.close)
            return made

        async def embed(plans: Sequence[Sequence[str]]) -> list[Vectors]:
            found = await embedder.embed([text for plan in plans for text in plan])
            ends = accumulate((len(plan) for plan in plans), initial=0)
            return [found[start:end] for start, end in pairwise(ends)]

        async def index(plans: Sequence[Sequence[IndexRow]]) -> list[None]:
            await stores.index.put([row for plan in plans for row in plan])
            return [None] * len(plans)

        async def runs(plans: Sequence[Sequence[RunEvent]]) -> list[None]:
            await stores.runs.record_runs([event for plan in plans for event in plan])
            return [None] * len(plans)

        embed_all = committer("embed", embed).submit

        async def embed_some(texts: Sequence[str]) -> Vectors:
            return await embed_all(texts) if texts else np.zeros((0, embedder.dimension), np.float32)

        yield Deps(
            clock=clock,
            log_id=log_id,
            model=model,
            embedder=embedder,
            store=stores.graph,
            admit=committer("admit", stores.graph.admit).submit,
            candidates=committer("candidates", stores.graph.candidates).submit,
            apply=committer("apply", stores.graph.apply).submit,
            embed=embed_some,
            index=committer("index", index).submit,
            record_runs=committer("runs", runs).submit,
        )
