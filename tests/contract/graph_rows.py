"""Plans and rows for contract tests: small, readable, each in a dataset nobody else has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from graph.model import (
    AdmitOutcome,
    AdmitPlan,
    CandidateQuery,
    Closure,
    EntityRow,
    FactRow,
    Fence,
    NewArtifact,
    WritePlan,
    WriteReceipt,
    entity_id,
)
from graph.protocols import GraphStore
from topics.keys import DatasetKey, derived_id

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
"""When all texts of these tests were written."""


def day(number: int) -> datetime:
    """Noon, so many days later."""
    return NOON + timedelta(days=number)


def fresh_key(dataset: str = "main") -> DatasetKey:
    return DatasetKey(f"user-{uuid4()}", dataset)


def fresh_partition() -> str:
    return f"log/test/remember.texts/{uuid4()}"


def text_of(key: DatasetKey, name: str, text: str = "Ada works at Acme.", **fields: Any) -> NewArtifact:
    """`name` makes the id: the same name is the same text."""
    row = NewArtifact(
        id=str(derived_id("test-artifact", key.dataset_id, name)),
        run_id=str(derived_id("test-run", key.dataset_id, name)),
        request_hash=f"hash of {name}",
        text=text,
        title="",
        kind="knowledge",
        valid_at=NOON,
        accepted_at=NOON,
    )
    return replace(row, **fields)


def admission(
    key: DatasetKey, texts: Sequence[NewArtifact], *, fence: Fence | None = None, position: int = 0, at: datetime = NOON
) -> AdmitPlan:
    return AdmitPlan(key, fence or Fence("log/test/nobody/0", 0), "log", position, at, tuple(texts))


async def admitted(store: GraphStore, key: DatasetKey, *names: str) -> AdmitOutcome:
    """Texts by these names, stored."""
    (outcome,) = await store.admit([admission(key, [text_of(key, name) for name in names])])
    return outcome


def entity(key: DatasetKey, name: str, type_: str = "person") -> EntityRow:
    return EntityRow(entity_id(key, name, type_), name, type_)


def fact(
    key: DatasetKey,
    subject: str,
    relation: str,
    object_: str,
    *,
    seq: int = 1,
    valid_at: datetime = NOON,
    **fields: Any,
) -> FactRow:
    """Subject a person, object a company; id from all of it, so the same call is the same fact."""
    row = FactRow(
        id=str(derived_id("test-fact", key.dataset_id, subject, relation, object_, str(seq))),
        subject_id=entity_id(key, subject, "person"),
        subject=subject,
        relation=relation,
        object_id=entity_id(key, object_, "company"),
        object=object_,
        description=f"{subject} {relation} {object_}.",
        valid_at=valid_at,
        created_at=NOON,
        seq=seq,
    )
    return replace(row, **fields)


def write(
    key: DatasetKey,
    seq: int,
    *,
    facts: Sequence[FactRow] = (),
    closures: Sequence[Closure] = (),
    restated: Sequence[FactRow] = (),
    entities: Sequence[EntityRow] | None = None,
    text: str | None = None,
    fence: Fence | None = None,
    last: int | None = None,
    at: datetime = NOON,
) -> WritePlan:
    """What the text of number `seq` yields; its entities are those of its facts if none are given. `last`: empty writes up to there."""
    if entities is None:
        named = [entity(key, one.subject) for one in facts] + [entity(key, one.object, "company") for one in facts]
        entities = list({one.id: one for one in named}.values())
    artifact = text_of(key, text or f"text {seq}")
    ids = tuple(one.id for one in entities)
    first = WriteReceipt(
        seq=seq,
        run_id=artifact.run_id,
        artifact_id=artifact.id,
        entity_ids=ids,
        new_entity_ids=ids,
        created_fact_ids=tuple(one.id for one in facts),
        restated_fact_ids=tuple(one.id for one in restated),
        closed_fact_ids=tuple(one.fact_id for one in closures),
    )
    more = [empty_receipt(key, number) for number in range(seq + 1, (last or seq) + 1)]
    return WritePlan(
        key=key,
        fence=fence or Fence("log/test/nobody/0", 0),
        first=seq,
        last=last or seq,
        applied_at=at,
        receipts=(first, *more),
        new_entities=tuple(entities),
        new_facts=tuple(facts),
        closures=tuple(closures),
        states=tuple((artifact.id, one.id) for one in (*facts, *restated)),
        mentions=tuple((artifact.id, id_) for id_ in ids),
    )


def empty_receipt(key: DatasetKey, seq: int) -> WriteReceipt:
    artifact = text_of(key, f"text {seq}")
    return WriteReceipt(seq=seq, run_id=artifact.run_id, artifact_id=artifact.id)


def question(
    key: DatasetKey,
    *,
    names: Sequence[str] = (),
    slots: Sequence[tuple[str, str]] = (),
    triples: Sequence[tuple[str, str, str]] = (),
) -> CandidateQuery:
    return CandidateQuery(key, frozenset(names), frozenset(slots), frozenset(triples))
