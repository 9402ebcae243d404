from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, ClassVar, Literal

import pytest
from pydantic import ValidationError

from tests.sample_records import OWNER, as_incoming, sample, sample_outgoing
from topics.codec import decode, encode, encoded_bytes
from topics.envelope import Envelope, Incoming
from topics.errors import Refused, StrandlineError, Undecodable
from topics.keys import DatasetKey
from topics.records import Record, SourceEvent
from topics.registry import TOPICS, topic

NAMES = [spec.name for spec in TOPICS]


def changed(topic_name: str, **fields: Any) -> Incoming:
    """A sample on the wire with some JSON fields set; None removes one."""
    incoming = as_incoming(encode(sample_outgoing(topic_name)), offset=41)
    value = json.loads(incoming.value or b"") | fields
    kept = {name: field for name, field in value.items() if field is not None}
    return replace(incoming, value=json.dumps(kept).encode())


@pytest.mark.parametrize("name", NAMES)
def test_a_record_comes_back_as_it_was_sent(name: str) -> None:
    assert decode(as_incoming(encode(sample_outgoing(name)))) == sample(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_samples_leave_no_field_at_its_default(name: str) -> None:
    record = sample(name)
    unset = [
        field
        for field, about in type(record).model_fields.items()
        if field != "schema_version" and getattr(record, field) == about.get_default(call_default_factory=True)
    ]
    assert unset == []


@pytest.mark.parametrize("name", NAMES)
def test_the_envelope_names_topic_sender_and_run(name: str) -> None:
    outgoing = sample_outgoing(name)
    envelope = Envelope.read(encode(outgoing).headers)
    assert envelope.type == f"strandline.{name}.v1"
    assert envelope.source == f"/strandline/{outgoing.sender}"
    assert (envelope.id, envelope.subject, envelope.sequence) == (outgoing.id, outgoing.subject, outgoing.sequence)


def test_the_value_is_plain_json_without_a_class_name() -> None:
    value = encode(sample_outgoing("remember.runs")).value
    assert b"RunEvent" not in value
    assert json.loads(value)["state"] == "failed"


def test_unknown_fields_are_ignored() -> None:
    assert decode(changed("remember.runs", added_later={"deep": [1]})) == sample("remember.runs")


def test_a_missing_optional_field_has_its_default() -> None:
    record = decode(changed("remember.texts", title=None))
    assert record == sample("remember.texts").model_copy(update={"title": ""})


def test_a_newer_schema_is_refused() -> None:
    with pytest.raises(Undecodable, match="schema 2, this release reads up to 1: upgrade"):
        decode(changed("remember.runs", schema_version=2))


def test_a_newer_schema_that_has_other_fields_is_named_as_such_too() -> None:
    with pytest.raises(Undecodable, match="schema 2, this release reads up to 1: upgrade"):
        decode(changed("remember.runs", schema_version=2, state=None, run_id="a new kind of id"))


def test_a_record_for_another_key_than_its_own_is_refused() -> None:
    incoming = as_incoming(encode(sample_outgoing("remember.runs")))
    with pytest.raises(Undecodable, match="another dataset"):
        decode(replace(incoming, key=DatasetKey("mallory").encode()))


@pytest.mark.parametrize("key", [None, b"", b"plain"])
def test_a_record_without_a_readable_key_is_refused(key: bytes | None) -> None:
    with pytest.raises(Undecodable, match="key"):
        decode(replace(as_incoming(encode(sample_outgoing("remember.runs"))), key=key))


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"text"',
        b"\xff\xfe",
        b'{"user_id":"' + b"\xed\xa0\x80" + b'"}',
        b"[" * 100_000,
    ],
)
def test_a_value_that_is_no_json_object_is_refused(value: bytes) -> None:
    with pytest.raises(Undecodable, match=r"remember\.runs/"):
        decode(replace(as_incoming(encode(sample_outgoing("remember.runs"))), value=value))


def test_a_record_without_a_value_is_refused() -> None:
    with pytest.raises(Undecodable, match="has no value"):
        decode(replace(as_incoming(encode(sample_outgoing("remember.runs"))), value=None))


@pytest.mark.parametrize(
    "wrong",
    [
        {"run_id": "not an id"},
        {"at": "2026-03-02T09:30:00"},
        {"state": "done"},
        {"fact_ids": "x"},
        {"user_id": ""},
        {"user_id": 7},
        {"schema_version": 0},
        {"run_id": None},
    ],
)
def test_a_field_of_a_wrong_type_is_refused_and_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(Undecodable, match=f"is no RunEvent: {next(iter(wrong))}"):
        decode(changed("remember.runs", **wrong))


def test_a_refusal_never_shows_what_the_record_says() -> None:
    with pytest.raises(Undecodable) as caught:
        decode(changed("remember.texts", seq="a secret of Ada"))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_a_record_larger_than_its_topic_takes_is_refused_before_it_is_sent(name: str) -> None:
    limit = topic(name).max_bytes
    outgoing = sample_outgoing(name)
    small = encoded_bytes(encode(replace(outgoing, subject="")))
    assert encode(replace(outgoing, subject="s" * (limit - small - 2048)))
    with pytest.raises(Refused, match=f"more than the {limit} the topic takes"):
        encode(replace(outgoing, subject="s" * (limit - small)))


def test_a_record_on_the_wrong_topic_is_a_bug_that_shows_at_once() -> None:
    with pytest.raises(TypeError, match="carries RememberText, not RunEvent"):
        encode(replace(sample_outgoing("remember.runs"), topic="remember.texts"))


def test_a_misspelt_topic_is_named_with_those_that_exist() -> None:
    with pytest.raises(StrandlineError, match=r"no topic 'remember\.text'.*remember\.texts"):
        encode(replace(sample_outgoing("remember.runs"), topic="remember.text"))


def test_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(ValidationError, match="timezone"):
        SourceEvent.model_validate(sample("source.events").model_dump() | {"occurred_at": "2026-03-02T09:30:00"})


def test_a_number_that_json_does_not_have_is_refused_when_the_record_is_made() -> None:
    with pytest.raises(ValidationError):
        SourceEvent.model_validate(sample("source.events").model_dump() | {"facts": {"score": float("nan")}})


@pytest.mark.parametrize("where", ["text", "subject"])
def test_half_a_surrogate_is_refused_before_it_is_sent(where: str) -> None:
    half = "secret \ud83d"
    event = sample("source.events")
    outgoing = replace(
        sample_outgoing("source.events"),
        record=event.model_copy(update={"text": half if where == "text" else "whole"}),
        subject=half if where == "subject" else "whole",
    )
    with pytest.raises(Refused, match="surrogate") as caught:
        encode(outgoing)
    assert "secret" not in str(caught.value)


class NextSchema(Record):
    """A record model as a later release might have it."""

    SCHEMA_VERSION: ClassVar[int] = 2
    kind: Literal["new"] = "new"


def test_what_is_sent_carries_the_schema_of_the_release_that_sends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    later = replace(topic("remember.runs"), value=NextSchema)
    monkeypatch.setattr("topics.codec.topic", lambda name: later)
    read_by_it_but_written_earlier = NextSchema(**OWNER, schema_version=1)
    encoded = encode(replace(sample_outgoing("remember.runs"), record=read_by_it_but_written_earlier))
    assert json.loads(encoded.value)["schema_version"] == 2
    assert decode(as_incoming(encoded)).schema_version == 2


def test_a_time_outside_the_calendar_is_undecodable_not_an_error_of_ours() -> None:
    value = b'{"user_id":"ada","run_id":"%s","idempotency_key":"k","text":"t","accepted_at":"2026-01-01T00:00:00Z",' % (
        b"0" * 8 + b"-0000-0000-0000-" + b"0" * 12
    )
    for time in (b"0001-01-01T00:00:00+14:00", b"9999-12-31T23:59:59-12:00"):
        incoming = Incoming(
            "remember.requests", 0, 0, DatasetKey("ada").encode(), value + b'"reference_time":"' + time + b'"}'
        )
        with pytest.raises(Undecodable, match="years 1 to 9999"):
            decode(incoming)
