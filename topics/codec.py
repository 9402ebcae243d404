"""Records to bytes and back. The log carries plain JSON; nothing in it names a Python class."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

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


_FRAME_BYTES = 1024
"""Room for what Kafka itself puts around a record and its batch: 61 bytes of batch header, lengths and offsets as
varints."""


def encode(outgoing: Outgoing) -> Encoded:
    """Raises Refused when the record is larger than its topic allows, better here than as a producer's error later, or is no Unicode."""
    spec = topic(outgoing.topic)
    if type(outgoing.record) is not spec.value:
        raise TypeError(f"{outgoing.topic} carries {spec.value.__name__}, not {type(outgoing.record).__name__}")
    record = outgoing.record
    if record.schema_version != spec.value.SCHEMA_VERSION:
        # Made by an older release and handed on: it was read, so it is written as what this release writes.
        record = record.model_copy(update={"schema_version": spec.value.SCHEMA_VERSION})
    envelope = Envelope(
        id=outgoing.id,
        type=event_type(spec),
        source=f"/strandline/{outgoing.sender}",
        time=outgoing.time,
        subject=outgoing.subject,
        sequence=outgoing.sequence,
        traceparent=outgoing.traceparent,
    )
    try:
        value = record.model_dump_json(exclude_defaults=True).encode()
        encoded = Encoded(spec.name, record.key.encode(), value, envelope.headers())
    except (PydanticSerializationError, UnicodeEncodeError):
        # The cause would show the text, so it is left out.
        raise Refused(
            f"the record for {spec.name} holds half a surrogate pair: decode its bytes with a replacement"
        ) from None
    size = encoded_bytes(encoded)
    if size > spec.max_bytes - _FRAME_BYTES:
        raise Refused(f"the record for {spec.name} has {size} bytes, more than the {spec.max_bytes} the topic takes")
    return encoded


def encoded_bytes(encoded: Encoded) -> int:
    """Key, value and headers together, without Kafka's own frame."""
    return len(encoded.key) + len(encoded.value) + sum(len(name) + len(value) for name, value in encoded.headers)


def decode(incoming: Incoming) -> Record:
    """The topic's record. Raises Undecodable for no or broken JSON, wrong types, a newer schema, or a key that is not
    the record's."""
    spec = topic(incoming.topic)
    where = f"{incoming.topic}/{incoming.partition}/{incoming.offset}"
    if incoming.value is None:
        raise Undecodable(f"{where} has no value")
    try:
        record = spec.value.model_validate_json(incoming.value)
    except ValidationError as error:
        _refuse_newer(_schema_version(incoming.value), spec.value, where)
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise Undecodable(f"{where} is no {spec.value.__name__}: {field}: {first['msg']}") from None
    _refuse_newer(record.schema_version, spec.value, where)
    if DatasetKey.decode(incoming.key) != record.key:
        raise Undecodable(
            f"{where} is keyed for another dataset than its record names: order and isolation hang on the key"
        )
    return record


class _Versioned(BaseModel):
    schema_version: int = 1


def _schema_version(value: bytes) -> int:
    """Of a value that its model does not read; 1 if it does not say."""
    try:
        return _Versioned.model_validate_json(value).schema_version
    except ValidationError:
        return 1


def _refuse_newer(version: int, model: type[Record], where: str) -> None:
    if version > model.SCHEMA_VERSION:
        raise Undecodable(
            f"{where} has schema {version}, this release reads up to {model.SCHEMA_VERSION}: upgrade, then replay it"
        )
