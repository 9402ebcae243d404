"""GraphStore on Neo4j: each call is one transaction for all its plans.

A small transaction costs about as much as a large one (the commit, and one more for each full-text index it touches), so plans of many
datasets share one. What makes a group safe to repeat is the fence (queries/writer.cypher): it locks each dataset's head by writing to it and
only then compares numbers and epochs. The same comparison is `graph.model.judge`; the statement moves the head exactly when it says APPLIED.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from graph.model import (
    AdmitOutcome,
    AdmitPlan,
    Admitted,
    CandidateQuery,
    Candidates,
    Id,
    StoredWrite,
    Verdict,
    WriteOutcome,
    WritePlan,
    judge,
)
from graph.neo4j.cypher import statement
from graph.neo4j.database import Database, Row, Transaction
from graph.neo4j.rows import (
    Properties,
    artifact_argument,
    closure_argument,
    dataset_name,
    dataset_properties,
    entity_argument,
    entity_row,
    fact_argument,
    fact_row,
    instant,
    maybe_instant,
    name_digest,
    receipt_argument,
    relation_key,
    stored_write,
    write_id,
    written,
)
from topics.errors import Permanent
from topics.keys import DatasetKey

_ADMIT = statement("intake", "admit")
_RAISE_EPOCHS = statement("writer", "raise_epochs")
_CANDIDATES = statement("writer", "candidates")
_FENCE = statement("writer", "fence")
_ENTITIES = statement("writer", "create_entities")
_FACTS = statement("writer", "create_facts")
_CLOSURES = statement("writer", "close_facts")
_NOTES = statement("writer", "note_writes")
_STORED = statement("writer", "stored_writes")


class Neo4jGraphStore:
    """GraphStore. The schema must be up to date (graph/neo4j/schema.py)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def raise_epochs(self, partitions: Sequence[str]) -> Mapping[str, int]:
        if not partitions:
            return {}
        rows = await self._database.write("raise epochs", _RAISE_EPOCHS, ids=sorted(set(partitions)))
        return {row["id"]: row["epoch"] for row in rows}

    async def admit(self, plans: Sequence[AdmitPlan]) -> Sequence[AdmitOutcome]:
        _one_a_dataset(plan.key for plan in plans)
        if not plans:
            return ()
        rows = await self._database.write("admit texts", _ADMIT, plans=[_admit_argument(plan) for plan in plans])
        answers = {row["dataset_id"]: row for row in rows}
        return [_admit_outcome(plan, answers[plan.key.dataset_id]) for plan in plans]

    async def candidates(self, queries: Sequence[CandidateQuery]) -> Sequence[Candidates]:
        if not queries:
            return ()
        rows = await self._database.read(
            "read candidates", _CANDIDATES, queries=[_candidate_argument(query) for query in queries]
        )
        # One row a query, in the order of UNWIND: the subqueries that follow it keep it.
        return [_candidates(row) for row in rows]

    async def apply(self, plans: Sequence[WritePlan]) -> Sequence[WriteOutcome]:
        _one_a_dataset(plan.key for plan in plans)
        if not plans:
            return ()
        async with self._database.transaction("apply writes") as tx:
            rows = {
                row["dataset_id"]: row for row in await tx.rows(_FENCE, plans=[_fence_argument(plan) for plan in plans])
            }
            outcomes = [_write_outcome(plan, rows[plan.key.dataset_id]) for plan in plans]
            passed = [plan for plan, outcome in zip(plans, outcomes, strict=True) if outcome.verdict is Verdict.APPLIED]
            if passed:
                await _write(tx, passed)
        return outcomes

    async def stored_writes(self, key: DatasetKey, seqs: Sequence[int]) -> Sequence[StoredWrite]:
        if not seqs:
            return ()
        rows = await self._database.read("read writes", _STORED, ids=[write_id(key, seq) for seq in seqs])
        found = {row["receipt"]["seq"]: stored_write(row) for row in rows}
        return [found[seq] for seq in seqs if seq in found]


def _one_a_dataset(keys: Iterable[DatasetKey]) -> None:
    """Both of two plans of a dataset would be judged by the head as it was before either."""
    seen = list(keys)
    if len(set(seen)) != len(seen):
        raise Permanent("two plans of one dataset in a group: the committer must hold the second back")


# ── intake ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _admit_argument(plan: AdmitPlan) -> Properties:
    artifacts = {artifact.id: artifact_argument(plan, artifact) for artifact in reversed(plan.artifacts)}
    ordered = list(reversed(artifacts.values()))
    return {
        "dataset_id": plan.key.dataset_id,
        "dataset": dataset_name(plan.key),
        "partition": plan.fence.partition,
        "epoch": plan.fence.epoch,
        "log_id": plan.log_id,
        "position": plan.position,
        "created_at": written(plan.created_at),
        "dataset_properties": dataset_properties(plan.key),
        "ids": [artifact["id"] for artifact in ordered],
        "artifacts": ordered,
    }


def _admit_outcome(plan: AdmitPlan, row: Row) -> AdmitOutcome:
    if row["fenced"]:
        return AdmitOutcome(fenced=True)
    hashes = {artifact.id: artifact.request_hash for artifact in reversed(plan.artifacts)}
    admitted: dict[Id, Admitted] = {
        stored["id"]: Admitted(stored["seq"], stored["request_hash"], instant(stored["created_at"]), known=True)
        for stored in row["known"]
    }
    for place, id_ in enumerate(row["fresh"], start=1):
        admitted[id_] = Admitted(row["base"] + place, hashes[id_], plan.created_at, known=False)
    return AdmitOutcome(fenced=False, admitted=admitted)


# ── writer ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _candidate_argument(query: CandidateQuery) -> Properties:
    def digest(name: str) -> str:
        return name_digest(query.key, name)

    return {
        "dataset_id": query.key.dataset_id,
        "names": [digest(name) for name in sorted(query.name_keys)],
        "slots": [
            {"subject": digest(subject), "relation": relation_key(relation)}
            for subject, relation in sorted(query.slots)
        ],
        "triples": [
            {"subject": digest(subject), "relation": relation_key(relation), "object": digest(object_)}
            for subject, relation, object_ in sorted(query.triples)
        ],
    }


def _candidates(row: Row) -> Candidates:
    facts = {fact["id"]: fact_row(fact) for fact in row["facts"]}
    return Candidates(
        applied_seq=row["applied_seq"],
        known_at=maybe_instant(row["known_at"]),
        entities=tuple(sorted(map(entity_row, row["entities"]), key=lambda one: one.id)),
        facts=tuple(sorted(facts.values(), key=lambda one: (one.seq, one.id))),
    )


def _fence_argument(plan: WritePlan) -> Properties:
    return {
        "dataset_id": plan.key.dataset_id,
        "dataset": dataset_name(plan.key),
        "partition": plan.fence.partition,
        "epoch": plan.fence.epoch,
        "first": plan.first,
        "last": plan.last,
        "applied_at": written(plan.applied_at),
    }


def _write_outcome(plan: WritePlan, row: Row) -> WriteOutcome:
    applied: int = row["applied_seq"]
    return WriteOutcome(
        judge(applied, row["owner_epoch"], first=plan.first, last=plan.last, epoch=plan.fence.epoch),
        applied_seq=applied,
    )


async def _write(tx: Transaction, plans: Sequence[WritePlan]) -> None:
    """The effects of the plans that passed: at most four statements, only those that have something to write."""
    entities = [entity_argument(plan, entity) for plan in plans for entity in plan.new_entities]
    facts = [fact_argument(plan, fact) for plan in plans for fact in plan.new_facts]
    closures = [closure_argument(plan, closure) for plan in plans for closure in plan.closures]
    if entities:
        await tx.one(_ENTITIES, entities=entities)
    if facts:
        _all_there(
            len(facts), (await tx.one(_FACTS, facts=facts))["written"], "a new fact names an entity that is not stored"
        )
    if closures:
        written = (await tx.one(_CLOSURES, closures=closures))["written"]
        _all_there(len(closures), written, "a fact to be closed is unknown, of another dataset or closed already")
    states = [{"artifact_id": text, "fact_id": fact} for plan in plans for text, fact in dict.fromkeys(plan.states)]
    mentions = [
        {"artifact_id": text, "entity_id": entity} for plan in plans for text, entity in dict.fromkeys(plan.mentions)
    ]
    receipts = [receipt_argument(plan, receipt) for plan in plans for receipt in plan.receipts]
    noted = await tx.one(_NOTES, receipts=receipts, states=states, mentions=mentions)
    _all_there(len(states), noted["states"], "a text or fact that a plan links is not stored")
    _all_there(len(mentions), noted["mentions"], "a text or entity that a plan links is not stored")


def _all_there(wanted: int, written: int, otherwise: str) -> None:
    """A plan is applied whole or not at all."""
    if written != wanted:
        raise Permanent(f"{otherwise} ({written} of {wanted} rows); nothing of the group was written")
