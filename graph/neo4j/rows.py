"""The model's rows as arguments of statements, and the rows of their answers as the model's."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from graph.model import (
    AdmitPlan,
    Closure,
    EntityRow,
    FactRow,
    NewArtifact,
    StoredWrite,
    WritePlan,
    WriteReceipt,
)
from topics.keys import DatasetKey, derived_id

Properties = dict[str, Any]

NAME_LENGTH = 80
"""Characters of a node's readable name; names are for people who look at the graph, nothing is found by them."""

RELATION_LENGTH = 200
"""Characters; a longer relation enters slots by its digest, since a range index takes no value above 8 KiB."""


def dataset_token(key: DatasetKey) -> str:
    """The dataset's id as one word of a full-text index."""
    return key.dataset_id.replace("-", "")


def name_digest(key: DatasetKey, name_key: str) -> str:
    """What entities are found by: of one length however long the name is, and different in each dataset."""
    return str(derived_id("name", key.user_id, key.dataset, name_key))


def relation_key(relation: str) -> str:
    """The relation as it stands in slots and triples."""
    return relation if len(relation) <= RELATION_LENGTH else str(derived_id("relation", relation))


def written(at: datetime | None) -> str | None:
    """A time as statements take it: ISO 8601 in UTC."""
    return None if at is None else at.astimezone(UTC).isoformat()


def instant(text: str) -> datetime:
    """A time as statements give it."""
    return datetime.fromisoformat(text).astimezone(UTC)


def maybe_instant(text: str | None) -> datetime | None:
    return None if text is None else instant(text)


def dataset_name(key: DatasetKey) -> str:
    return shortened(f"{key.user_id}/{key.dataset}")


def shortened(name: str) -> str:
    """A name for people: one line, not too long."""
    line = " ".join(name[: 4 * NAME_LENGTH].split())
    return line if len(line) <= NAME_LENGTH else line[: NAME_LENGTH - 1] + "…"


# ── in ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


def dataset_properties(key: DatasetKey) -> Properties:
    return {
        "id": key.dataset_id,
        "dataset_id": key.dataset_id,
        "user_id": key.user_id,
        "name": shortened(key.dataset),
        "dataset": key.dataset,
    }


def artifact_argument(plan: AdmitPlan, artifact: NewArtifact) -> Properties:
    properties = {
        "id": artifact.id,
        "dataset_id": plan.key.dataset_id,
        "dataset_token": dataset_token(plan.key),
        "name": shortened(artifact.title or artifact.text),
        "run_id": artifact.run_id,
        "request_hash": artifact.request_hash,
        "text": artifact.text,
        "title": artifact.title,
        "kind": artifact.kind,
        "author": artifact.author,
        "source_type": artifact.source_type,
        "connector": artifact.connector,
        "instance_id": artifact.instance_id,
        "object_id": artifact.object_id,
        "version": artifact.version,
        "url": artifact.url,
        "session_id": artifact.session_id,
        "tags": list(artifact.tags),
    }
    return {
        "id": artifact.id,
        "valid_at": written(artifact.valid_at),
        "accepted_at": written(artifact.accepted_at),
        "properties": properties,
    }


def entity_argument(plan: WritePlan, entity: EntityRow) -> Properties:
    properties = {
        "id": entity.id,
        "dataset_id": plan.key.dataset_id,
        "dataset_token": dataset_token(plan.key),
        "name": entity.name,
        "name_key": entity.name_key,
        "name_digest": name_digest(plan.key, entity.name_key),
        "type": entity.type,
        "description": entity.description,
    }
    return {"id": entity.id, "created_at": written(entity.created_at or plan.applied_at), "properties": properties}


def fact_argument(plan: WritePlan, fact: FactRow) -> Properties:
    properties: Properties = {
        "id": fact.id,
        "dataset_id": plan.key.dataset_id,
        "name": shortened(f"{fact.subject} {fact.relation} {fact.object}"),
        "subject_id": fact.subject_id,
        "subject": fact.subject,
        "relation": fact.relation,
        "object_id": fact.object_id,
        "object": fact.object,
        "description": fact.description,
        "origin": fact.origin,
        "model_id": fact.model_id,
        "seq": fact.seq,
    }
    if fact.expired_at is None and fact.retracted_at is None:
        properties["slot"] = f"{fact.subject_id}/{relation_key(fact.relation)}"
        properties["triple"] = f"{properties['slot']}/{fact.object_id}"
    times = ("valid_at", "created_at", "invalid_at", "stated_invalid_at", "expired_at", "retracted_at")
    told = {name: written(at) for name in times if (at := getattr(fact, name)) is not None}
    return {"subject_id": fact.subject_id, "object_id": fact.object_id, "properties": properties, **told}


def closure_argument(plan: WritePlan, closure: Closure) -> Properties:
    return {
        "dataset_id": plan.key.dataset_id,
        "fact_id": closure.fact_id,
        "invalid_at": written(closure.invalid_at),
        "expired_at": written(closure.expired_at),
    }


def write_id(key: DatasetKey, seq: int) -> str:
    return f"{key.dataset_id}/{seq}"


def receipt_argument(plan: WritePlan, receipt: WriteReceipt) -> Properties:
    properties = {
        "id": write_id(plan.key, receipt.seq),
        "dataset_id": plan.key.dataset_id,
        "name": f"write {receipt.seq}",
        "seq": receipt.seq,
        "run_id": receipt.run_id,
        "artifact_id": receipt.artifact_id,
        "entity_ids": list(receipt.entity_ids),
        "new_entity_ids": list(receipt.new_entity_ids),
        "created_fact_ids": list(receipt.created_fact_ids),
        "restated_fact_ids": list(receipt.restated_fact_ids),
        "closed_fact_ids": list(receipt.closed_fact_ids),
        "failed": receipt.failed,
    }
    return {"applied_at": written(plan.applied_at), "properties": properties}


# ── out ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def entity_row(properties: Mapping[str, Any]) -> EntityRow:
    return EntityRow(
        id=properties["id"],
        name=properties["name"],
        type=properties["type"],
        description=properties["description"],
        created_at=maybe_instant(properties["created_at"]),
    )


def fact_row(properties: Mapping[str, Any]) -> FactRow:
    return FactRow(
        id=properties["id"],
        subject_id=properties["subject_id"],
        subject=properties["subject"],
        relation=properties["relation"],
        object_id=properties["object_id"],
        object=properties["object"],
        description=properties["description"],
        valid_at=instant(properties["valid_at"]),
        created_at=instant(properties["created_at"]),
        invalid_at=maybe_instant(properties.get("invalid_at")),
        stated_invalid_at=maybe_instant(properties.get("stated_invalid_at")),
        expired_at=maybe_instant(properties.get("expired_at")),
        retracted_at=maybe_instant(properties.get("retracted_at")),
        origin=properties["origin"],
        model_id=properties["model_id"],
        seq=properties["seq"],
    )


def write_receipt(properties: Mapping[str, Any]) -> WriteReceipt:
    return WriteReceipt(
        seq=properties["seq"],
        run_id=properties["run_id"],
        artifact_id=properties["artifact_id"],
        entity_ids=tuple(properties["entity_ids"]),
        new_entity_ids=tuple(properties["new_entity_ids"]),
        created_fact_ids=tuple(properties["created_fact_ids"]),
        restated_fact_ids=tuple(properties["restated_fact_ids"]),
        closed_fact_ids=tuple(properties["closed_fact_ids"]),
        failed=properties["failed"],
    )


def stored_write(row: Mapping[str, Any]) -> StoredWrite:
    """Rows in the receipt's order: entities as mentioned, facts created, restated, closed."""
    receipt = write_receipt(row["receipt"])
    entities = {one["id"]: entity_row(one) for one in row["entities"]}
    facts = {one["id"]: fact_row(one) for one in row["facts"]}
    entity_order = dict.fromkeys(receipt.entity_ids + receipt.new_entity_ids)
    fact_order = dict.fromkeys(receipt.created_fact_ids + receipt.restated_fact_ids + receipt.closed_fact_ids)
    artifact = row["artifact"]
    return StoredWrite(
        receipt=receipt,
        applied_at=instant(row["receipt"]["applied_at"]),
        text=artifact["text"],
        title=artifact["title"],
        valid_at=instant(artifact["valid_at"]),
        accepted_at=instant(artifact["accepted_at"]),
        entities=tuple(entities[id_] for id_ in entity_order if id_ in entities),
        facts=tuple(facts[id_] for id_ in fact_order if id_ in facts),
    )
