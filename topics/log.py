"""The log as everybody but the hosts sees it: append durably, follow from a place. One contract suite for every
implementation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from topics.envelope import Incoming, Outgoing


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record lies."""

    topic: str
    partition: int
    offset: int


class Log(Protocol):
    """Topics with partitions and offsets. Safe for many callers in one event loop."""

    @property
    def log_id(self) -> str:
        """Tells this log from one recreated under the same address: offsets of another log mean nothing here."""
        ...

    async def append(self, records: Sequence[Outgoing]) -> Sequence[Place]:
        """Sends all, in order per key, and returns when every one is durable (acks=all); places in the order given.

        Raises Outage("kafka") after the deadline, and once closed: whether they arrived is then unknown, so repeat with the same ids. They
        may still arrive later, before newer records of their key. Raises Refused for a record that is too large; nothing of the call has
        then been sent.
        """
        ...

    async def ends(self, topic: str) -> Mapping[int, int]:
        """Per partition the offset that the next record will get. Raises Outage after the deadline."""
        ...

    def follow(self, topic: str, start: Mapping[int, int]) -> AsyncIterator[Incoming]:
        """Records from `start` (inclusive, per partition), for ever; in order per partition, none twice. Waits through outages.

        Partitions not named start at their end, which is looked up at the first step. A start outside of what is kept begins at the
        earliest kept. Takes no part in any consumer group: every follower sees every record. Raises Refused at the first step for a
        partition that the topic does not have. Close the iterator, or cancel the task that reads it, to end it.
        """
        ...

    async def close(self) -> None:
        """Waits for what is queued, bounded also while the broker is away; a second call does nothing."""
        ...
