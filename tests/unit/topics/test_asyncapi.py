from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.sample_records import sample_outgoing
from topics.asyncapi import document, render
from topics.codec import encode
from topics.registry import TOPICS, TopicSpec

STORED = Path(__file__).parents[3] / "docs" / "asyncapi.yaml"

each_topic = pytest.mark.parametrize("spec", TOPICS, ids=lambda spec: spec.name)


def resolved(reference: str) -> Any:
    """What a `#/a/b` reference points to."""
    found: Any = document()
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


def references(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
        return own + [one for value in node.values() for one in references(value)]
    if isinstance(node, list):
        return [one for value in node for one in references(value)]
    return []


def test_the_stored_document_is_the_one_that_the_table_gives() -> None:
    assert STORED.read_text(encoding="utf-8") == render(), "run `python -m topics.asyncapi > docs/asyncapi.yaml`"


def test_the_yaml_says_what_the_document_says() -> None:
    assert yaml.safe_load(render()) == document()


def test_every_reference_leads_somewhere() -> None:
    assert all(resolved(reference) for reference in references(document()))


@each_topic
def test_a_topic_has_a_channel_and_an_operation_for_each_sender_and_reader(spec: TopicSpec) -> None:
    ((channel_id, channel),) = [
        (name, one) for name, one in document()["channels"].items() if one["address"] == spec.name
    ]
    actions = [
        operation["action"]
        for operation in document()["operations"].values()
        if operation["channel"]["$ref"] == f"#/channels/{channel_id}"
    ]
    assert actions.count("send") == len(spec.sent_by)
    assert actions.count("receive") == len(spec.read_by)
    assert channel["bindings"]["kafka"]["partitions"] == spec.partitions


@each_topic
def test_a_record_on_the_wire_fits_the_described_payload_and_headers(spec: TopicSpec) -> None:
    encoded = encode(sample_outgoing(spec.name))
    whole = document()
    payload = Draft202012Validator(
        {"$ref": f"#/components/schemas/{spec.value.__name__}", "components": whole["components"]}
    )
    payload.validate(yaml.safe_load(encoded.value))
    headers = {name: value.decode() for name, value in encoded.headers}
    Draft202012Validator(whole["components"]["messages"][spec.value.__name__]["headers"]).validate(headers)
    described = whole["components"]["messages"][spec.value.__name__]["headers"]["properties"]
    assert set(headers) == set(described)
