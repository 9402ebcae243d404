"""What travels beside a record: CloudEvents 1.0 attributes (Kafka binding, binary mode) and the W3C `traceparent`, as
headers.

Any stock CloudEvents consumer can read id, type, source and time without our code. `ce_id` is the idempotency key of
the record: whoever sees the same id twice has seen the same event twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from topics.errors import Undecodable
from topics.records.base import Record

Headers = tuple[tuple[str, bytes], ...]

CONTENT_TYPE = "application/json"

_CONSTANT: Headers = (("content-type", CONTENT_TYPE.encode()), ("ce_specversion", b"1.0"))


@dataclass(frozen=True, slots=True)
class Envelope:
    """The headers of one record."""

    id: UUID
    type: str
    """`strandline.<topic>.v<schema>`."""
    source: str
    """Which part of Strandline sent it, e.g. `/strandline/intake`."""
    time: datetime
    subject: str = ""
    """What it is about: the run id, or a source's object id."""
    sequence: int | None = None
    """The dataset's running number, where there is one (CloudEvents `sequence` extension)."""
    traceparent: str = ""

    def headers(self) -> Headers:
        time = self.time if self.time.tzinfo is UTC else self.time.astimezone(UTC)
        pairs = [
            *_CONSTANT,
            ("ce_id", str(self.id).encode()),
            ("ce_type", self.type.encode()),
            ("ce_source", self.source.encode()),
            ("ce_time", (time.isoformat()[:-6] + "Z").encode()),
        ]
        if self.subject:
            pairs.append(("ce_subject", self.subject.encode()))
        if self.sequence is not None:
            pairs.append(("ce_sequence", str(self.sequence).encode()))
        if self.traceparent:
            pairs.append(("traceparent", self.traceparent.encode()))
        return tuple(pairs)

    @staticmethod
    def read(headers: Iterable[tuple[str, bytes]]) -> Envelope:
        """The envelope in these headers; names that it does not know are ignored. Raises Undecodable if a required
        one is missing or broken."""
        found = tuple(headers)
        try:
            sequence = header(found, "ce_sequence")
            time = datetime.fromisoformat(header(found, "ce_time"))
            if time.tzinfo is None:
                raise ValueError("ce_time has no zone")
            return Envelope(
                id=UUID(header(found, "ce_id")),
                type=header(found, "ce_type"),
                source=header(found, "ce_source"),
                time=time.astimezone(UTC),
                subject=header(found, "ce_subject"),
                sequence=int(sequence) if sequence else None,
                traceparent=header(found, "traceparent"),
            )
        except ValueError as error:
            raise Undecodable(f"the headers are no envelope of CloudEvents 1.0: {error}") from None


def header(headers: Iterable[tuple[str, bytes]], name: str) -> str:
    """The first header of that name as text, "" if there is none. Never raises, bad UTF-8 is replaced: strangers
    write headers too."""
    for key, value in headers:
        if key == name and value is not None:
            return bytes(value).decode("utf-8", "replace")
    return ""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to be sent. The key is the record's own; the id must be derived wherever a step can be repeated."""

    topic: str
    record: Record
    id: UUID
    sender: str
    time: datetime
    subject: str = ""
    sequence: int | None = None
    traceparent: str = ""


@dataclass(frozen=True, slots=True)
class Incoming:
    """A record as it lies on a log, not yet decoded."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = field(default=())
    timestamp: datetime | None = None

    @property
    def traceparent(self) -> str:
        return header(self.headers, "traceparent")
