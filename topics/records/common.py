"""Parts that several records carry: where a record came from, facts that a payload states itself, references to a
source object."""

from __future__ import annotations

from typing import Literal
from uuid import UUID

from pydantic import Field

from topics.records.base import Instant, Part


class StatedFact(Part):
    """A fact that needs no model: the payload says it (a mail header, a calendar time, a chat author)."""

    subject: str = Field(min_length=1)
    subject_type: str = "other"
    relation: str = Field(min_length=1)
    object: str = Field(min_length=1)
    object_type: str = "other"
    description: str = ""
    """The fact as a sentence; "" lets the writer make one from its parts."""
    valid_at: Instant | None = None
    """When it became true; None = the text's reference time."""
    invalid_at: Instant | None = None
    """The end the source itself gave; half-open."""


class SourceObject(Part):
    """Which object of which source a text is: one identity for live, import and resync."""

    connector: str
    """gmail, slack, mbox, maildir, …"""
    instance_id: str
    """The account, workspace or file set, e.g. a mailbox address or a Slack team id."""
    object_id: str
    version: str
    """The vendor's version of the object; compared as the connector defines."""
    url: str = ""


class Position(Part):
    """Where the first record of a run lies in `remember.requests`: guards the numbering against redelivery."""

    log_id: str
    partition: int = Field(ge=0)
    offset: int = Field(ge=0)


class Chunk(Part):
    """A piece of a text, as a half-open range of character offsets into it."""

    index: int = Field(ge=0)
    start: int = Field(ge=0)
    end: int = Field(ge=0)


RunState = Literal["accepted", "queryable", "enriching", "complete", "failed", "rejected"]
"""accepted → queryable → enriching → complete | failed; rejected = refused after acceptance."""

StageState = Literal["started", "succeeded", "failed"]

ChangeKind = Literal["created", "restated", "closed"]
"""What a write did to a fact: a new row; a further source for one that stands; its interval closed by a newer
statement."""

RunId = UUID
