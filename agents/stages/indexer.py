"""indexer: make the index follow the graph. Ids are derived, so a repeat overwrites; it retries until written and
never loses a change.

Reads   graph.changes (GraphChange)
Sends   nothing: with it the run is complete
Needs   deps.index; deps.embed for a change that was retold without vectors   Cost  one batch for all lanes that wait
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence

import numpy as np

from agents.contract import Done, Result, Turn
from agents.deps import Deps
from agents.rows import words_of_chunks, words_of_entity, words_of_fact
from agents.stages.writer import note_of
from graph.protocols import Collection, IndexRow
from topics.records import GraphChange

STAGE = "indexer"

Words = tuple[GraphChange, Collection, str, str, str]
"""change, collection, row id, owner id, words"""


async def run(turn: Turn[GraphChange], deps: Deps) -> Sequence[Result]:
    rows = {row[2]: row for change in turn.records for row in _words_of(change)}
    vectors = await _vectors(turn.records, rows, deps)
    await deps.index(
        [
            IndexRow(turn.key, collection, row, words, vectors[row], owner)
            for _, collection, row, owner, words in rows.values()
        ]
    )
    return [Done(note=None if change.failed else note_of(change, "complete")) for change in turn.records]


def _words_of(change: GraphChange) -> Iterator[Words]:
    artifact = str(change.artifact_id)
    for row, words in words_of_chunks(change.artifact_id, change.title, change.text, change.chunks).items():
        yield change, "Chunk", row, artifact, words
    for entity in change.entities:
        if entity.created:
            yield (
                change,
                "Entity",
                str(entity.id),
                str(entity.id),
                words_of_entity(entity.name, entity.type, entity.description),
            )
    for fact in change.facts:
        if fact.change == "created":
            yield change, "Fact", str(fact.id), str(fact.id), words_of_fact(fact.description)


async def _vectors(
    changes: Sequence[GraphChange], rows: dict[str, Words], deps: Deps
) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    """The vectors that travelled, if they are of our embedder; the rest in one request."""
    found = {
        row: np.frombuffer(base64.b64decode(vector), dtype=np.float32)
        for change in changes
        if change.vector_model == deps.embedder.model_id
        for row, vector in change.vectors.items()
    }
    missing = [row for row in rows if row not in found]
    if missing:
        computed = await deps.embed([rows[row][4] for row in missing])
        found.update(zip(missing, computed, strict=True))
    return found
