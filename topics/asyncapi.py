"""The AsyncAPI 3.0 document of all topics, made from TOPICS: `python -m topics.asyncapi > docs/asyncapi.yaml`.

A test compares the file with what this writes, so it cannot go stale. One channel a topic, one operation for each (stage, topic).
"""

from __future__ import annotations

import sys
from typing import Any

from pydantic.json_schema import models_json_schema

from topics.envelope import CONTENT_TYPE
from topics.registry import TOPICS, TopicSpec, event_type

_KAFKA_BINDING = "0.5.0"
"""Version of the Kafka bindings (github.com/asyncapi/bindings) whose fields are used."""

_UUID = {"type": "string", "format": "uuid"}

_REQUIRED_HEADERS = ("content-type", "ce_specversion", "ce_id", "ce_type", "ce_source", "ce_time")

_INTRODUCTION = """\
What travels through Strandline on Kafka. Values are JSON, headers are CloudEvents 1.0 in binary mode with a W3C `traceparent`, the key is
the JSON array [user, dataset] without blanks. All topics have the same number of partitions and the partitioner of the Java client (murmur2),
so a dataset lies on one partition number everywhere; librdkafka clients need `partitioner=murmur2_random`.

Delivery is at least once: a record may come twice, always with the same `ce_id`. Order holds within a key. Fields that are not set are left
out of the JSON and have the default of the schema; readers must ignore fields they do not know. A breaking change comes as a new topic.
An installation may put a prefix before every address.
"""


_ORIGIN = (
    "# Made from the table TOPICS by `python -m topics.asyncapi > docs/asyncapi.yaml`: change the table, not this.\n"
)


def document() -> dict[str, Any]:
    """The document as plain data, in the table's order."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Strandline topics",
            "version": "1.0.0",
            "description": _INTRODUCTION,
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": CONTENT_TYPE,
        "channels": {_id(spec): _channel(spec) for spec in TOPICS},
        "operations": dict(pair for spec in TOPICS for pair in _operations(spec)),
        "components": {"messages": {_message_id(spec): _message(spec) for spec in TOPICS}, "schemas": _schemas()},
    }


def _id(spec: TopicSpec) -> str:
    """`remember.texts` → `rememberTexts`: component ids have no dots."""
    first, *others = spec.name.split(".")
    return first + "".join(word.capitalize() for word in others)


def _message_id(spec: TopicSpec) -> str:
    return spec.value.__name__


def _channel(spec: TopicSpec) -> dict[str, Any]:
    return {
        "address": spec.name,
        "title": spec.name,
        "description": spec.doc,
        "messages": {_message_id(spec): {"$ref": f"#/components/messages/{_message_id(spec)}"}},
        "bindings": {
            "kafka": {
                "topic": spec.name,
                "partitions": spec.partitions,
                "topicConfiguration": {
                    "cleanup.policy": [spec.cleanup],
                    "retention.ms": int(spec.config()["retention.ms"]),
                    "max.message.bytes": spec.max_bytes,
                },
                "bindingVersion": _KAFKA_BINDING,
            }
        },
    }


def _operations(spec: TopicSpec) -> list[tuple[str, dict[str, Any]]]:
    parts = [(part, "send", "sends") for part in spec.sent_by] + [(part, "receive", "reads") for part in spec.read_by]
    return [
        (
            f"{part}_{verb}_{_id(spec)}",
            {
                "action": action,
                "title": f"{part} {verb} {spec.name}",
                "channel": {"$ref": f"#/channels/{_id(spec)}"},
                "messages": [{"$ref": f"#/channels/{_id(spec)}/messages/{_message_id(spec)}"}],
            },
        )
        for part, action, verb in parts
    ]


def _message(spec: TopicSpec) -> dict[str, Any]:
    return {
        "name": _message_id(spec),
        "title": event_type(spec),
        "summary": " ".join((spec.value.__doc__ or "").split()),
        "contentType": CONTENT_TYPE,
        "headers": _headers(spec),
        "payload": {"$ref": f"#/components/schemas/{_message_id(spec)}"},
        "correlationId": {
            "description": "The id of the record; a repeat has the same.",
            "location": "$message.header#/ce_id",
        },
        "bindings": {
            "kafka": {
                "key": {
                    "type": "string",
                    "description": "JSON array [user, dataset] without blanks; the unit of order.",
                    "examples": ['["ada@example.org","main"]'],
                },
                "bindingVersion": _KAFKA_BINDING,
            }
        },
    }


def _headers(spec: TopicSpec) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(_REQUIRED_HEADERS),
        "properties": {
            "content-type": {"type": "string", "const": CONTENT_TYPE},
            "ce_specversion": {"type": "string", "const": "1.0"},
            "ce_id": _UUID | {"description": "Idempotency key of the record."},
            "ce_type": {"type": "string", "const": event_type(spec)},
            "ce_source": {"type": "string", "description": "Which part sent it.", "examples": ["/strandline/intake"]},
            "ce_time": {"type": "string", "format": "date-time", "description": "When it was made, UTC."},
            "ce_subject": {"type": "string", "description": "What it is about: a run's id, or a source's object id."},
            "ce_sequence": {
                "type": "string",
                "pattern": "^[0-9]+$",
                "description": "The dataset's running number, where there is one.",
            },
            "traceparent": {"type": "string", "description": "W3C Trace Context."},
        },
    }


def _schemas() -> dict[str, Any]:
    # As readers see it: a field that is not required has a default and may be missing.
    _, schema = models_json_schema(
        [(spec.value, "validation") for spec in TOPICS], ref_template="#/components/schemas/{model}"
    )
    return {name: _unwrapped(one) for name, one in schema["$defs"].items()}


def _unwrapped(node: Any) -> Any:
    """Without the line breaks that descriptions have in the source, so that wrapping a docstring changes nothing here."""
    if isinstance(node, dict):
        return {
            name: " ".join(value.split()) if name == "description" and isinstance(value, str) else _unwrapped(value)
            for name, value in node.items()
        }
    return [_unwrapped(value) for value in node] if isinstance(node, list) else node


def render() -> str:
    """The document as YAML, with a line that says where it comes from."""
    import yaml  # only where the document is made; not a dependency of what runs

    class Dumper(yaml.SafeDumper):
        """Writes texts of several lines as blocks, so that people can read them."""

    def block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    Dumper.add_representer(str, block)
    return _ORIGIN + yaml.dump(document(), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=120)


if __name__ == "__main__":
    sys.stdout.write(render())
