"""writer: the only place that changes facts. Reads what the graph knows, decides the turn's texts in order, writes
them in one transaction.

Reads   graph.writes (GraphWrite)
Sends   graph.changes (GraphChange), one for each text, in number order per dataset; again with the same id when a
        text comes again
Needs   deps.candidates, deps.embed, deps.apply   Cost  one read, one embeddings request, one transaction a turn,
        shared with other lanes
Fails   Fenced: another worker owns the partition. Hole: a number before the turn's is missing, so its lane stops

The numbers make it exactly once. A turn carries first..last; the store applies it only on top of first - 1, under a
lock, in the transaction of the effects, and only for the partition's present owner. So a turn that is repeated, late
or from a worker that lost its partition changes nothing.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from itertools import accumulate

import numpy as np

from agents.contract import Done, Fenced, GaveUp, Hole, Result, RunNote, Turn
from agents.deps import Deps
from agents.models.base import Vectors
from agents.overlay import Overlay
from agents.rows import words_of_chunks, words_of_entity, words_of_fact
from graph.model import (
    CandidateQuery,
    Candidates,
    EntityRow,
    FactRow,
    StoredWrite,
    Verdict,
    WritePlan,
    WriteReceipt,
    name_key,
)
from graph.relations import canonical, relation_of
from topics import ids
from topics.envelope import Outgoing
from topics.errors import Permanent
from topics.records import EntityChange, FactChange, GraphChange, GraphWrite
from topics.records.common import ChangeKind

STAGE = "writer"

STATEMENTS_PER_PLAN = 2000
"""Decided in one transaction; a turn with more takes several."""

VECTOR_BYTES = 4 * 1024 * 1024
"""Vectors that travel with one change; a text of hundreds of facts goes without."""


async def run(turn: Turn[GraphWrite], deps: Deps) -> Sequence[Result]:
    writes = {write.seq: write for write in reversed(turn.records)}
    changes = await _write(turn, sorted(writes.values(), key=lambda write: write.seq), deps)
    return [_done(delivery.record, changes, delivery.incoming.traceparent) for delivery in turn.deliveries]


async def give_up(turn: Turn[GraphWrite], error: Permanent, deps: Deps) -> GaveUp:
    """Moves the number on without the effects that cannot be written; else all that follows in the dataset would wait
    for ever."""
    write = turn.records[0].model_copy(update={"failed": str(error) or error.code})
    changes = await _write(turn, [write], deps)
    note = RunNote(write.run_id, write.accepted_at, "failed", error_code=error.code, error=str(error), seq=write.seq)
    return GaveUp(error, _done(write, changes, turn.deliveries[0].incoming.traceparent).sends, note)


async def _write(turn: Turn[GraphWrite], writes: list[GraphWrite], deps: Deps) -> dict[int, GraphChange]:
    """Changes by number for all of `writes`, written now or before."""
    query = _query(turn, writes)
    changes: dict[int, GraphChange] = {}
    while True:
        known = await deps.candidates(query)
        fresh = [write for write in writes if write.seq > known.applied_seq]
        if not fresh:
            break
        _require_no_hole(turn, known.applied_seq, fresh)
        verdict, new = await _apply(turn, _first_part(fresh), known, deps)
        changes.update(new)
        if fresh[-1].seq in changes:
            break
        if verdict is Verdict.FENCED:
            raise Fenced.of(turn.fence)
        # A part is written, or somebody moved the head between our read and our write and what we decided may be wrong:
        # read and decide the rest anew.
    if missing := {write.seq: write for write in writes if write.seq not in changes}:
        for stored in await deps.store.stored_writes(turn.key, list(missing)):
            changes[stored.receipt.seq] = _retold(missing[stored.receipt.seq], stored)
    return changes


def _first_part(fresh: Sequence[GraphWrite]) -> Sequence[GraphWrite]:
    """So many texts that the transaction stays short; at least one, whose size extract has bounded."""
    statements = accumulate(len(write.statements) for write in fresh)
    fitting = sum(1 for total in statements if total <= STATEMENTS_PER_PLAN)
    return fresh[: max(1, fitting)]


def _require_no_hole(turn: Turn[GraphWrite], applied: int, fresh: Sequence[GraphWrite]) -> None:
    for expected, write in enumerate(fresh, start=applied + 1):
        if write.seq != expected:
            raise Hole(
                f"dataset {turn.key.dataset_id}: number {expected} is missing before {write.seq}; "
                "its record is lost or still to come, so nothing of this dataset is written until it is replayed"
            )


def _query(turn: Turn[GraphWrite], writes: Sequence[GraphWrite]) -> CandidateQuery:
    names: set[str] = set()
    slots: set[tuple[str, str]] = set()
    triples: set[tuple[str, str, str]] = set()
    for write in writes:
        names.update(name_key(mention.name) for mention in write.entities)
        for statement in write.statements:
            subject, object_ = name_key(statement.subject), name_key(statement.object)
            relation = canonical(statement.relation)
            names.update((subject, object_))
            if relation_of(relation).single_valued:
                slots.add((subject, relation))
            else:
                triples.add((subject, relation, object_))
    return CandidateQuery(turn.key, frozenset(names), frozenset(slots), frozenset(triples))


async def _apply(
    turn: Turn[GraphWrite], fresh: Sequence[GraphWrite], known: Candidates, deps: Deps
) -> tuple[Verdict, dict[int, GraphChange]]:
    # The machine's clock may step back; what we knew when must not.
    now = max(deps.clock.now(), known.known_at) if known.known_at else deps.clock.now()
    overlay = Overlay(turn.key, known, now)
    for write in fresh:
        overlay.decide(write)
    decided = overlay.decided
    vectors = await _vectors(fresh, decided.new_entities.values(), decided.new_facts.values(), deps)
    plan = WritePlan(
        key=turn.key,
        fence=turn.fence,
        first=fresh[0].seq,
        last=fresh[-1].seq,
        applied_at=now,
        receipts=tuple(decided.receipts),
        new_entities=tuple(decided.new_entities.values()),
        new_facts=tuple(decided.new_facts.values()),
        closures=tuple(decided.closures.values()),
        states=tuple(decided.states),
        mentions=tuple(decided.mentions),
    )
    outcome = await deps.apply(plan)
    if outcome.verdict is not Verdict.APPLIED:
        return outcome.verdict, {}
    changes: dict[int, GraphChange] = {}
    for write, receipt in zip(fresh, decided.receipts, strict=True):
        entities = [overlay.entities[entity] for entity in receipt.entity_ids]
        facts = [overlay.facts[fact] for fact in _fact_ids(receipt)]
        change = _change(write, receipt, entities, facts).model_copy(update={"applied_at": now})
        own = {row: vectors[row] for row in _row_ids(change) if row in vectors}
        if sum(map(len, own.values())) > VECTOR_BYTES:
            own = {}  # the indexer computes them anew
        changes[write.seq] = change.model_copy(
            update={"vectors": own, "vector_model": deps.embedder.model_id if own else ""}
        )
    return outcome.verdict, changes


async def _vectors(
    writes: Sequence[GraphWrite], entities: Iterable[EntityRow], facts: Iterable[FactRow], deps: Deps
) -> dict[str, str]:
    """Row id → vector of all that the turn adds to the index, in one request."""
    words: dict[str, str] = {}
    for write in writes:
        words.update(words_of_chunks(write.artifact_id, write.title, write.text, write.chunks))
    words.update((entity.id, words_of_entity(entity.name, entity.type, entity.description)) for entity in entities)
    words.update((fact.id, words_of_fact(fact.description)) for fact in facts)
    found: Vectors = await deps.embed(list(words.values()))
    return {
        row: base64.b64encode(vector.astype(np.float32).tobytes()).decode()
        for row, vector in zip(words, found, strict=True)
    }


def _row_ids(change: GraphChange) -> list[str]:
    chunks = words_of_chunks(change.artifact_id, change.title, change.text, change.chunks)
    return [*chunks, *(str(entity.id) for entity in change.entities), *(str(fact.id) for fact in change.facts)]


def _fact_ids(receipt: WriteReceipt) -> dict[str, ChangeKind]:
    """What happened to each fact; closing is told last, since a text may close what it restates."""
    kinds: dict[str, ChangeKind] = dict.fromkeys(receipt.created_fact_ids, "created")
    kinds.update(dict.fromkeys(receipt.restated_fact_ids, "restated"))
    kinds.update((fact, "closed") for fact in receipt.closed_fact_ids if kinds.get(fact) != "created")
    return kinds


def _retold(write: GraphWrite, stored: StoredWrite) -> GraphChange:
    """The change of a write that was applied before, rebuilt from the store; without vectors, which the indexer then
    computes."""
    told = _change(write, stored.receipt, stored.entities, stored.facts)
    return told.model_copy(update={"applied_at": stored.applied_at})


def _change(
    write: GraphWrite, receipt: WriteReceipt, entities: Sequence[EntityRow], facts: Sequence[FactRow]
) -> GraphChange:
    kinds = _fact_ids(receipt)
    new = set(receipt.new_entity_ids)
    return GraphChange.model_validate(
        {
            **write.model_dump(
                include={
                    "user_id",
                    "dataset",
                    "run_id",
                    "artifact_id",
                    "seq",
                    "text",
                    "title",
                    "valid_at",
                    "accepted_at",
                }
            ),
            "chunks": write.chunks,
            "applied_at": write.accepted_at,
            "entities": tuple(
                EntityChange.model_validate(
                    {
                        "id": entity.id,
                        "name": entity.name,
                        "type": entity.type,
                        "description": entity.description,
                        "created": entity.id in new,
                    }
                )
                for entity in entities
            ),
            "facts": tuple(_fact_change(fact, kinds[fact.id]) for fact in facts),
            "failed": receipt.failed,
        }
    )


def _fact_change(fact: FactRow, kind: ChangeKind) -> FactChange:
    return FactChange.model_validate(
        {
            "id": fact.id,
            "change": kind,
            "subject_id": fact.subject_id,
            "subject": fact.subject,
            "relation": fact.relation,
            "object_id": fact.object_id,
            "object": fact.object,
            "description": fact.description,
            "valid_at": fact.valid_at,
            "invalid_at": fact.invalid_at,
            "created_at": fact.created_at,
            "expired_at": fact.expired_at,
        }
    )


def _done(write: GraphWrite, changes: dict[int, GraphChange], traceparent: str) -> Done:
    change = changes[write.seq]
    send = Outgoing(
        "graph.changes",
        change,
        id=ids.sent_id("graph.changes", write.run_id),
        sender=STAGE,
        time=change.applied_at,
        subject=str(write.run_id),
        sequence=write.seq,
        traceparent=traceparent,
    )
    if change.failed:
        return Done((send,))
    return Done((send,), note_of(change, "enriching"))


def note_of(change: GraphChange, state: str) -> RunNote:
    """What the run log is told of a written text: which facts it stated and which it ended."""
    return RunNote(
        run_id=change.run_id,
        accepted_at=change.accepted_at,
        state="complete" if state == "complete" else "enriching",
        artifact_id=change.artifact_id,
        seq=change.seq,
        fact_ids=tuple(fact.id for fact in change.facts if fact.change != "closed"),
        closed_fact_ids=tuple(fact.id for fact in change.facts if fact.change == "closed"),
        entity_ids=tuple(entity.id for entity in change.entities),
    )
