from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from topics.records.base import Instant, Part, Record
from topics.records.common import StatedFact

Scalar = str | int | float | bool | tuple[str, ...]


class Container(Part):
    """The channel, mailbox label, repository or calendar an object lies in."""

    id: str
    name: str = ""
    kind: str = ""
    private: bool = False
    is_dm: bool = False


class Actor(Part):
    """Who acted. Ids stay beside names: a display name is a claim."""

    id: str = ""
    name: str = ""
    address: str = ""
    kind: Literal["person", "bot", "ghost"] = "person"
    is_self: bool = False
    role: str = ""

    @property
    def label(self) -> str:
        """The best name there is: display name, else address, else id."""
        return self.name or self.address or self.id


class Attachment(Part):
    """A file beside a text: always its description, its text where it is small and textual."""

    id: str
    name: str = ""
    mime: str = ""
    size_bytes: int = 0
    text: str = ""


class SourceEvent(Record):
    """One change of one object of a source, the same whether it came live, by poll, by backfill or from a file."""

    event_id: UUID
    """UUIDv5(instance, object_id, version, change, content_hash): no trace of how it came."""
    connector: str
    instance_id: str
    object_kind: str
    """message, thread_reply, pull_request, …"""
    object_id: str
    version: str
    change: Literal["upsert", "delete"] = "upsert"
    ingest: Literal["push", "poll", "backfill", "resync", "import"] = "push"
    delivery_id: str = ""
    occurred_at: Instant
    """The vendor's time."""
    observed_at: Instant
    """When we first saw it."""
    thread_id: str = ""
    parent_id: str = ""
    container: Container | None = None
    actor: Actor = Actor(kind="ghost")
    participants: tuple[Actor, ...] = ()
    title: str = ""
    text: str = ""
    """What is new in it: without quotes and signatures where `strip_method` says so."""
    text_full: str = ""
    """With quotes; "" if the same as `text`."""
    strip_method: str = ""
    attachments: tuple[Attachment, ...] = ()
    url: str = ""
    content_hash: str
    """SHA-256 over the vendor's content, before names are resolved."""
    facts: dict[str, Scalar] = Field(default_factory=dict)
    """For the rules; an unknown one is absent, not false."""
    stated_facts: tuple[StatedFact, ...] = ()
    parse_status: Literal["ok", "degraded"] = "ok"
    flags: tuple[str, ...] = ()
    """date_header_invalid, charset_repaired, tz_unknown, truncated, …"""
