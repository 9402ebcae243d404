"""One file a topic. A topic is plural, its record singular: `remember.texts` carries `RememberText`."""

from topics.records.base import Instant, Part, Record
from topics.records.common import ChangeKind, Chunk, Position, RunState, SourceObject, StageState, StatedFact
from topics.records.dead_letters import DeadLetter
from topics.records.graph_changes import EntityChange, FactChange, GraphChange
from topics.records.graph_writes import EntityMention, FactStatement, GraphWrite
from topics.records.remember_requests import RememberRequest
from topics.records.remember_runs import RunEvent, StageReport
from topics.records.remember_texts import RememberText
from topics.records.source_events import Actor, Attachment, Container, SourceEvent

__all__ = [
    "Actor",
    "Attachment",
    "ChangeKind",
    "Chunk",
    "Container",
    "DeadLetter",
    "EntityChange",
    "EntityMention",
    "FactChange",
    "FactStatement",
    "GraphChange",
    "GraphWrite",
    "Instant",
    "Part",
    "Position",
    "Record",
    "RememberRequest",
    "RememberText",
    "RunEvent",
    "RunState",
    "SourceEvent",
    "SourceObject",
    "StageReport",
    "StageState",
    "StatedFact",
]
