"""TOPICS, the table of all that travels. Topics are created from it, the AsyncAPI document is written from it, agents
subscribe by it.

Every keyed topic has the same partition count and the same partitioner, so a dataset lies on one partition number
everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from topics.errors import StrandlineError
from topics.records import (
    DeadLetter,
    GraphChange,
    GraphWrite,
    Record,
    RememberRequest,
    RememberText,
    RunEvent,
    SourceEvent,
)

STAGE_PARTITIONS = 12
"""Divides evenly among 1, 2, 3, 4, 6 and 12 workers. It never changes on a running log: order hangs on it."""

MAX_RECORD_BYTES = 8 * 1024 * 1024
"""A text may have 1 MiB; JSON escapes can make six bytes of one."""

MAX_WORK_BYTES = 2 * MAX_RECORD_BYTES
"""What a stage makes of a text carries the text and what was found in it: it must fit whatever was accepted."""


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """One topic: what it carries, how long, who sends and reads it. `sent_by` and `read_by` name stages, or `api`,
    `cli`, `sdk`."""

    name: str
    value: type[Record]
    doc: str
    sent_by: tuple[str, ...]
    read_by: tuple[str, ...]
    retention: timedelta
    partitions: int = STAGE_PARTITIONS
    cleanup: Literal["delete", "compact"] = "delete"
    max_bytes: int = MAX_RECORD_BYTES

    def config(self) -> dict[str, str]:
        """The topic's configuration as Kafka names it."""
        return {
            "cleanup.policy": self.cleanup,
            "retention.ms": str(int(self.retention.total_seconds() * 1000)),
            "max.message.bytes": str(self.max_bytes),
        }


_STAGES = ("router", "intake", "extract", "writer", "indexer")

TOPICS: tuple[TopicSpec, ...] = (
    TopicSpec(
        "source.events",
        SourceEvent,
        doc="Changes of source objects (mails, messages), parsed; the router decides what becomes of them.",
        sent_by=("cli",),
        read_by=("router",),
        retention=timedelta(days=3),
    ),
    TopicSpec(
        "remember.requests",
        RememberRequest,
        doc="Texts that somebody asks to remember. A request is accepted once it is here.",
        sent_by=("api", "cli", "router"),
        read_by=("intake",),
        retention=timedelta(days=7),
    ),
    TopicSpec(
        "remember.texts",
        RememberText,
        doc="Admitted texts, numbered, in order per dataset.",
        sent_by=("intake",),
        read_by=("extract",),
        retention=timedelta(days=7),
        max_bytes=MAX_WORK_BYTES,
    ),
    TopicSpec(
        "graph.writes",
        GraphWrite,
        doc="What each text yields, to be decided against the graph, in order per dataset.",
        sent_by=("extract",),
        read_by=("writer",),
        retention=timedelta(days=7),
        max_bytes=MAX_WORK_BYTES,
    ),
    TopicSpec(
        "graph.changes",
        GraphChange,
        doc="What each text changed in the graph. A contract for consumers; may repeat, always with the same id.",
        sent_by=("writer",),
        read_by=("indexer",),
        retention=timedelta(days=7),
        max_bytes=MAX_WORK_BYTES,
    ),
    TopicSpec(
        "remember.runs",
        RunEvent,
        doc="The steps of every run. A contract for consumers; may repeat, always with the same id.",
        sent_by=("api", "cli", *_STAGES),
        read_by=("runs", "api"),
        retention=timedelta(days=7),
    ),
    TopicSpec(
        "dead.letters",
        DeadLetter,
        doc="Records that failed for good, with their bytes, the error and where they lay.",
        sent_by=(*_STAGES, "runs"),
        read_by=("dead_letters",),
        retention=timedelta(days=30),
        max_bytes=2 * MAX_RECORD_BYTES,
    ),
)

_BY_NAME = {spec.name: spec for spec in TOPICS}


def topic(name: str) -> TopicSpec:
    """The row of that name; StrandlineError for an unknown one, since a misspelt topic must not be silently created."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise StrandlineError(f"no topic {name!r}; the table TOPICS has {', '.join(_BY_NAME)}") from None


def event_type(spec: TopicSpec) -> str:
    """The CloudEvents type of the topic's records."""
    return f"strandline.{spec.name}.v{spec.value.SCHEMA_VERSION}"
