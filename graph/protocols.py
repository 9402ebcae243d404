"""The seams of what stays: three views of the graph and the index. Each has one contract suite, run on every
implementation.

Errors: `Outage("neo4j")`/`Outage("weaviate")` when the service is away, `Retryable` for a deadlock or lost leader
(the committer repeats the group), `Permanent` for a plan that cannot be written. A driver's exception is kept as
`__cause__`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from graph.model import (
    AdmitOutcome,
    AdmitPlan,
    CandidateQuery,
    Candidates,
    Id,
    Neighbourhood,
    RunView,
    StoredWrite,
    WriteOutcome,
    WritePlan,
)
from topics.keys import DatasetKey
from topics.records import RunEvent


class GraphStore(Protocol):
    """Everything that changes the graph. Each call is one transaction for all its plans, safe to repeat.

    At most one plan of a dataset in a call, plans in dataset order: so that two groups cannot deadlock. A plan that cannot be written (it names
    a row that is not stored, closes a fact that is closed) raises Permanent for the whole call, and nothing of it is written.
    """

    async def raise_epochs(self, partitions: Sequence[str]) -> Mapping[str, int]:
        """Claims partitions: raises the epoch of each and gives the new ones. Whoever held a lower one is fenced from
        now on."""
        ...

    async def admit(self, plans: Sequence[AdmitPlan]) -> Sequence[AdmitOutcome]:
        """Stores and numbers texts, 1, 2, 3 … per dataset; a known id keeps its number and its row. Searchable by
        words on return."""
        ...

    async def candidates(self, queries: Sequence[CandidateQuery]) -> Sequence[Candidates]:
        """What each dataset knows of the names, slots and triples asked for; one snapshot a query; facts no longer
        believed left out."""
        ...

    async def apply(self, plans: Sequence[WritePlan]) -> Sequence[WriteOutcome]:
        """Fence and effects in one transaction, at most five statements. Only APPLIED plans have changed anything."""
        ...

    async def stored_writes(self, key: DatasetKey, seqs: Sequence[int]) -> Sequence[StoredWrite]:
        """Applied writes by number, in the order asked; a number not applied yet is left out."""
        ...


class RunStore(Protocol):
    """The run log as rows: folded from `remember.runs`, in any order, any number of times."""

    async def record_runs(self, events: Sequence[RunEvent]) -> None:
        """Folds events in: the furthest state wins, a final one stays, stages are merged by name."""
        ...

    async def run(self, user_id: str, run_id: Id) -> RunView | None:
        """None if this user has no such run."""
        ...

    async def runs(
        self, user_id: str, *, dataset: str | None = None, state: str | None = None, before: str = "", limit: int = 50
    ) -> tuple[Sequence[RunView], str]:
        """The newest first, and the cursor of the next page ("" at the end). Raises Refused for a cursor that is
        none."""
        ...


class GraphReader(Protocol):
    """Questions to the graph, always at a pair of times."""

    async def has_dataset(self, key: DatasetKey) -> bool: ...

    async def find_texts(self, key: DatasetKey, words: str, limit: int) -> Sequence[tuple[Id, float]]:
        """Artifact ids by full text, best first, with the store's own score; the words are words, never a query
        language."""
        ...

    async def find_entities(self, key: DatasetKey, words: str, limit: int) -> Sequence[tuple[Id, float]]:
        """Entity ids by the words of their names; else as `find_texts`. What search has of entities while the index is away."""
        ...

    async def newest_facts(
        self, key: DatasetKey, entity_ids: Sequence[Id], *, as_of: datetime, known_at: datetime, limit: int = 10
    ) -> Mapping[Id, tuple[Id, ...]]:
        """Of each entity that has any: its true facts with the newest `valid_at`, newest first. Costs the same on a hub."""
        ...

    async def neighbourhood(
        self,
        key: DatasetKey,
        *,
        fact_ids: Sequence[Id] = (),
        entity_ids: Sequence[Id] = (),
        artifact_ids: Sequence[Id] = (),
        as_of: datetime,
        known_at: datetime,
        facts_per_entity: int = 10,
        sources_per_fact: int = 5,
    ) -> Neighbourhood:
        """Found ids made whole: see Neighbourhood. Ids of another dataset are as unknown ones: left out.

        Of an entity the facts with the newest `valid_at`, of a fact the oldest texts, each up to its limit: a hub or an often repeated
        fact must not make the answer large.
        """
        ...


Collection = Literal["Fact", "Entity", "Chunk"]
COLLECTIONS: tuple[Collection, ...] = ("Fact", "Entity", "Chunk")


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One row of the index. `id` is the graph's: a fact's, an entity's, or one derived from artifact and chunk
    number."""

    key: DatasetKey
    collection: Collection
    id: Id
    words: str
    vector: NDArray[np.float32]
    """(dimension,) float32, unit length."""
    owner_id: Id = ""
    """The artifact a chunk belongs to; else the row's own id."""


class VectorIndex(Protocol):
    """Finds; never decides what is true. One tenant a dataset."""

    async def put(self, rows: Sequence[IndexRow]) -> None:
        """Writes rows of any datasets; the same id overwrites; all are there on return, else it raises (and repeating
        is harmless)."""
        ...

    async def by_words(self, key: DatasetKey, collection: Collection, words: str, limit: int) -> Sequence[Id]:
        """`owner_id`s by BM25, best first, each once; [] for an unknown dataset."""
        ...

    async def by_vector(
        self, key: DatasetKey, collection: Collection, vector: NDArray[np.float32], limit: int
    ) -> Sequence[tuple[Id, float]]:
        """`owner_id`s with cosine similarity, best first, each once; [] for an unknown dataset."""
        ...

    async def ids(self, key: DatasetKey, collection: Collection) -> set[Id]:
        """All row ids of a dataset: for comparing with the graph, not for serving."""
        ...
