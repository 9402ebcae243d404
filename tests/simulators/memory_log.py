"""A log in memory that can be away or refuse, for tests of who appends to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence

from topics.codec import encode
from topics.envelope import Incoming, Outgoing
from topics.log import Place


class MemoryLog:
    """`trouble` is asked before each append and may raise."""

    def __init__(self, trouble: Callable[[Sequence[Outgoing]], None] = lambda records: None) -> None:
        self.trouble = trouble
        self.appends: list[list[Outgoing]] = []

    @property
    def log_id(self) -> str:
        return "memory"

    @property
    def records(self) -> list[Outgoing]:
        return [record for append in self.appends for record in append]

    def on(self, topic: str) -> list[Outgoing]:
        return [record for record in self.records if record.topic == topic]

    async def append(self, records: Sequence[Outgoing]) -> Sequence[Place]:
        self.trouble(records)
        for record in records:
            encode(record)
        self.appends.append(list(records))
        return [Place(record.topic, 0, 0) for record in records]

    async def ends(self, topic: str) -> Mapping[int, int]:
        return {}

    async def follow(self, topic: str, start: Mapping[int, int]) -> AsyncIterator[Incoming]:
        nothing: tuple[Incoming, ...] = ()
        for incoming in nothing:
            yield incoming

    async def close(self) -> None: ...
