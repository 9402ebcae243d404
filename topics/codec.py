"""Records to bytes and back. The log carries plain JSON; nothing in it names a Python class."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import ValidationError

from topics.envelope import Envelope, Headers, Incoming, Outgoing
from topics.errors import Refused, Undecodable
from topics.keys import DatasetKey
from topics.records.base import Record
from topics.registry import event_type, topic


class Encoded(NamedTuple):
    """What goes onto the log."""

    topic: str
    key: bytes
    value: bytes
    headers: Headers


def encode(outgoing: Outgoing) -> Encoded:
    """Raises Refused when the record is larger than its topic allows: better here than as a producer's error later."""
    spec = topic(outgoing.topic)
    if type(outgoing.record) is not spec.value:
        raise TypeError(f"{outgoing.topic} carries {spec.value.__name__}, not {type(outgoing.record).__name__}")
    value = outgoing.record.model_dump_json(exclude_defaults=True).encode()
    envelope = Envelope(
        id=outgoing.id,
        type=event_type(spec),
        source=f"/strandline/{outgoing.sender}",
        time=outgoing.time,
        subject=outgoing.subject,
        sequence=outgoing.sequence,
        traceparent=outgoing.traceparent,
    )
    if len(value) > spec.max_bytes - 4096:  # room for key, headers and the batch's own frame
        raise Refused(f"the record for {spec.name} has {len(value)} bytes, more than the {spec.max_bytes} the topic takes")
    return Encoded(spec.name, outgoing.record.key.encode(), value, envelope.headers())


def decode(incoming: Incoming) -> Record:
    """The topic's record. Raises Undecodable for no or broken JSON, wrong types, a newer schema, or a key that is not the record's."""
    spec = topic(incoming.topic)
    where = f"{incoming.topic}/{incoming.partition}/{incoming.offset}"
    if incoming.value is None:
        raise Undecodable(f"{where} has no value")
    try:
        record = spec.value.model_validate_json(incoming.value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise Undecodable(f"{where} is no {spec.value.__name__}: {field}: {first['msg']}") from None
    if record.schema_version > spec.value.SCHEMA_VERSION:
        raise Undecodable(
            f"{where} has schema {record.schema_version}, this release reads up to {spec.value.SCHEMA_VERSION}: upgrade, then replay it"
        )
    if DatasetKey.decode(incoming.key) != record.key:
        raise Undecodable(f"{where} is keyed for another dataset than its record names: order and isolation hang on the key")
    return record
