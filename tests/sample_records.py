"""One full record for each topic, every field set to something that is not its default.

`python -m tests.sample_records` stores them as this release writes them under `tests/fixtures/records/v1`; run it at a release. A file that
is there is never written again: what a release once wrote must be read for ever, and as the same.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from topics.codec import Encoded, encode
from topics.envelope import Incoming, Outgoing
from topics.keys import partition_of
from topics.records import (
    Actor,
    Attachment,
    Chunk,
    Container,
    DeadLetter,
    EntityChange,
    EntityMention,
    FactChange,
    FactStatement,
    GraphChange,
    GraphWrite,
    Record,
    RememberRequest,
    RememberText,
    RunEvent,
    SourceEvent,
    SourceObject,
    StageReport,
    StatedFact,
)
from topics.registry import STAGE_PARTITIONS, topic

STORED = Path(__file__).parent / "fixtures" / "records" / "v1"

RUN = UUID("7c5b3c1e-0d1f-5a4e-9a57-3f7f8f0c1a01")
ARTIFACT = UUID("7c5b3c1e-0d1f-5a4e-9a57-3f7f8f0c1a02")
ADA = UUID("7c5b3c1e-0d1f-5a4e-9a57-3f7f8f0c1a03")
ACME = UUID("7c5b3c1e-0d1f-5a4e-9a57-3f7f8f0c1a04")
FACT = UUID("7c5b3c1e-0d1f-5a4e-9a57-3f7f8f0c1a05")
OLD_FACT = UUID("7c5b3c1e-0d1f-5a4e-9a57-3f7f8f0c1a06")
EVENT = UUID("7c5b3c1e-0d1f-5a4e-9a57-3f7f8f0c1a07")

MONDAY = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
TUESDAY = datetime(2026, 3, 3, 17, 5, 6, 789000, tzinfo=UTC)
FRIDAY = datetime(2026, 3, 6, tzinfo=UTC)

TEXT = "Ada hat am Montag bei Acme angefangen – „endlich“, sagt sie. 🎉"
OWNER: dict[str, Any] = {"user_id": "ada@example.org", "dataset": "team, „Süd“"}

STATED = StatedFact(
    subject="Ada",
    subject_type="person",
    relation="works_at",
    object="Acme",
    object_type="organization",
    description="Ada works at Acme.",
    valid_at=MONDAY,
    invalid_at=FRIDAY,
)

SOURCE = SourceObject(
    connector="slack",
    instance_id="T024BE7LD",
    object_id="C024/1772443800.000100",
    version="3",
    url="https://example.org/m/1",
)


def sample(topic_name: str) -> Record:
    """The topic's record."""
    return _SAMPLES[topic_name]


def sample_outgoing(topic_name: str) -> Outgoing:
    """The topic's record with a full envelope."""
    return Outgoing(
        topic=topic_name,
        record=sample(topic_name),
        id=EVENT,
        sender=topic(topic_name).sent_by[0],
        time=TUESDAY,
        subject=str(RUN),
        sequence=7,
        traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    )


def as_incoming(encoded: Encoded, offset: int = 0) -> Incoming:
    """What a reader gets of it."""
    partition = partition_of(encoded.key, STAGE_PARTITIONS)
    return Incoming(encoded.topic, partition, offset, encoded.key, encoded.value, encoded.headers)


_SAMPLES: dict[str, Record] = {
    "source.events": SourceEvent(
        **OWNER,
        event_id=EVENT,
        connector="slack",
        instance_id="T024BE7LD",
        object_kind="thread_reply",
        object_id="C024/1772443800.000100",
        version="3",
        change="delete",
        ingest="backfill",
        delivery_id="Ev01",
        occurred_at=MONDAY,
        observed_at=TUESDAY,
        thread_id="1772443800.000100",
        parent_id="1772443800.000000",
        container=Container(id="C024", name="süd", kind="channel", private=True, is_dm=True),
        actor=Actor(id="U1", name="Ada", address="ada@example.org", kind="bot", is_self=True, role="owner"),
        participants=(Actor(id="U2", kind="person"),),
        title="Neu hier",
        text=TEXT,
        text_full="> zitiert\n" + TEXT,
        strip_method="talon",
        attachments=(Attachment(id="F1", name="notes.txt", mime="text/plain", size_bytes=12, text="Notiz"),),
        url="https://example.org/m/1",
        content_hash="9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        facts={"is_dm": True, "words": 9, "score": 0.5, "whole": 2.0, "name": "x", "labels": ("a", "b")},
        stated_facts=(STATED,),
        parse_status="degraded",
        flags=("charset_repaired",),
    ),
    "remember.requests": RememberRequest(
        **OWNER,
        run_id=RUN,
        idempotency_key="slack:C024.1772443800-3",
        request_hash="60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
        text=TEXT,
        title="Neu hier",
        kind="episode",
        reference_time=MONDAY,
        accepted_at=TUESDAY,
        session_id="s-1",
        tags=("onboarding", "süd"),
        source_type="slack",
        source=SOURCE,
        author="Ada",
        author_type="bot",
        stated_facts=(STATED,),
        needs_model=False,
    ),
    "remember.texts": RememberText(
        **OWNER,
        run_id=RUN,
        artifact_id=ARTIFACT,
        seq=7,
        text=TEXT,
        title="Neu hier",
        kind="episode",
        chunks=(Chunk(index=0, start=0, end=30), Chunk(index=1, start=30, end=62)),
        valid_at=MONDAY,
        accepted_at=TUESDAY,
        author="Ada",
        author_type="bot",
        source=SOURCE,
        stated_facts=(STATED,),
        needs_model=False,
        redelivered=True,
    ),
    "graph.writes": GraphWrite(
        **OWNER,
        run_id=RUN,
        artifact_id=ARTIFACT,
        seq=7,
        text=TEXT,
        title="Neu hier",
        chunks=(Chunk(index=0, start=0, end=62),),
        valid_at=MONDAY,
        accepted_at=TUESDAY,
        entities=(EntityMention(name="Ada", type="person", description="Neue Kollegin"),),
        statements=(
            FactStatement(
                subject="Ada",
                subject_type="person",
                relation="works_at",
                object="Acme",
                object_type="organization",
                description="Ada works at Acme.",
                valid_at=MONDAY,
                invalid_at=FRIDAY,
                ends=True,
                origin="rules",
            ),
        ),
        model_id="rules/1",
        failed="the model refused",
    ),
    "graph.changes": GraphChange(
        **OWNER,
        run_id=RUN,
        artifact_id=ARTIFACT,
        seq=7,
        applied_at=FRIDAY,
        text=TEXT,
        title="Neu hier",
        chunks=(Chunk(index=0, start=0, end=62),),
        valid_at=MONDAY,
        accepted_at=TUESDAY,
        entities=(EntityChange(id=ADA, name="Ada", type="person", description="Neue Kollegin", created=True),),
        facts=(
            FactChange(
                id=OLD_FACT,
                change="closed",
                subject_id=ADA,
                subject="Ada",
                relation="works_at",
                object_id=ACME,
                object="Acme",
                description="Ada works at Acme.",
                valid_at=MONDAY,
                invalid_at=FRIDAY,
                created_at=TUESDAY,
                expired_at=FRIDAY,
            ),
        ),
        vectors={str(FACT): "AACAPwAAAEA="},
        vector_model="minilm",
        failed="the model refused",
    ),
    "remember.runs": RunEvent(
        **OWNER,
        run_id=RUN,
        state="failed",
        at=FRIDAY,
        stage=StageReport(
            stage="extract",
            state="failed",
            started_at=MONDAY,
            finished_at=TUESDAY,
            attempts=3,
            error="the model refused",
        ),
        artifact_id=ARTIFACT,
        seq=7,
        fact_ids=(FACT,),
        closed_fact_ids=(OLD_FACT,),
        entity_ids=(ADA, ACME),
        error_code="permanent",
        error="The model refused the text.",
        accepted_at=TUESDAY,
        idempotency_key="slack:C024.1772443800-3",
        source_type="slack",
    ),
    "dead.letters": DeadLetter(
        **OWNER,
        topic="remember.texts",
        partition=3,
        offset=41,
        stage="extract",
        record_key=b'["ada@example.org","main"]',
        record_value=b'\xff\xfe{"broken',
        record_headers=(("ce_id", str(EVENT).encode()), ("odd", b"\x00\xff")),
        error_code="undecodable",
        error="remember.texts/3/41 is no RememberText",
        attempts=2,
        run_id=RUN,
        failed_at=FRIDAY,
    ),
}


def stored_form(topic_name: str) -> dict[str, Any]:
    """A sample as a file: headers, key and value as on the wire, and how they are read, defaults included."""
    encoded = encode(sample_outgoing(topic_name))
    return {
        "topic": topic_name,
        "key": encoded.key.decode(),
        "headers": {name: value.decode() for name, value in encoded.headers},
        "value": json.loads(encoded.value),
        "reads_as": sample(topic_name).model_dump(mode="json"),
    }


def store() -> None:
    """Writes the samples that have no file yet."""
    STORED.mkdir(parents=True, exist_ok=True)
    for name in _SAMPLES:
        path = STORED / f"{name}.json"
        if not path.exists():
            path.write_text(json.dumps(stored_form(name), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    store()
