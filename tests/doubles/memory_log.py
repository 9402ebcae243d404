"""A log in memory, for tests that need no broker: real encoding, real partitions, and an outage that can be switched on."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence

from topics.codec import decode, encode
from topics.envelope import Incoming, Outgoing
from topics.errors import Outage
from topics.keys import partition_of
from topics.log import Place
from topics.records import Record
from topics.registry import topic as spec_of


class MemoryLog:
    """See `topics.log.Log`. While `away` is set every call is an outage and followers wait."""

    def __init__(self, log_id: str = "memory") -> None:
        self._log_id = log_id
        self._partitions: defaultdict[str, dict[int, list[Incoming]]] = defaultdict(dict)
        self._grew = asyncio.Event()
        self.away = False
        self.followers = 0

    @property
    def log_id(self) -> str:
        return self._log_id

    async def append(self, records: Sequence[Outgoing]) -> Sequence[Place]:
        encoded = [encode(record) for record in records]
        self._require()
        places = []
        for one in encoded:
            partition = partition_of(one.key, spec_of(one.topic).partitions)
            kept = self._partitions[one.topic].setdefault(partition, [])
            kept.append(Incoming(one.topic, partition, len(kept), one.key, one.value, one.headers))
            places.append(Place(one.topic, partition, len(kept) - 1))
        self.wake()
        return places

    async def ends(self, topic: str) -> Mapping[int, int]:
        self._require()
        return {number: len(self._kept(topic, number)) for number in range(spec_of(topic).partitions)}

    async def follow(self, topic: str, start: Mapping[int, int]) -> AsyncGenerator[Incoming, None]:
        ends = await self.ends(topic)
        places = {number: start.get(number, ends[number]) for number in ends}
        self.followers += 1
        try:
            while True:
                grew = self._grew
                for number in places:
                    if places[number] > len(self._kept(topic, number)):
                        places[number] = 0  # beyond the end: the earliest kept, as everywhere
                    while not self.away and places[number] < len(self._kept(topic, number)):
                        places[number] += 1
                        yield self._kept(topic, number)[places[number] - 1]
                await grew.wait()
        finally:
            self.followers -= 1

    async def close(self) -> None:
        return

    def make_anew(self, topic: str) -> None:
        """Deletes the topic and makes it again; followers notice as those of a real log do, by their places."""
        self._partitions.pop(topic, None)
        self.wake()

    def wake(self) -> None:
        """Lets followers look again."""
        self._grew.set()
        self._grew = asyncio.Event()

    def records(self, topic: str) -> list[Record]:
        """All of a topic, decoded, in order per partition."""
        return [decode(incoming) for incoming in self.raw(topic)]

    def raw(self, topic: str) -> list[Incoming]:
        return [incoming for _, kept in sorted(self._partitions[topic].items()) for incoming in kept]

    @property
    def size(self) -> int:
        """Records on all topics."""
        return sum(len(kept) for topic in self._partitions.values() for kept in topic.values())

    def _kept(self, topic: str, partition: int) -> list[Incoming]:
        return self._partitions[topic].get(partition, [])

    def _require(self) -> None:
        if self.away:
            raise Outage("kafka", "the log is away")
