"""How far a consumer group is, and setting it back to the start."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import CommitFailedError, KafkaError, for_code

from topics.errors import StrandlineError
from topics.kafka import reader
from topics.kafka.admin import administering
from topics.kafka.names import TopicNames
from topics.registry import TOPICS, topic

_WITHOUT_MEMBERS = ("Empty", "Dead")

_PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """Where a group is in one partition: offsets, `start` and `end` being the earliest kept and the next to be written."""

    topic: str
    partition: int
    start: int
    committed: int | None
    """The next record the group will get; None if it never committed here, then it begins at `start`."""
    end: int

    @property
    def behind(self) -> int:
        """Records that wait."""
        return self.end - max(self.start, self.committed or 0)

    @property
    def lost(self) -> int:
        """Records that retention took before the group read them."""
        return max(0, self.start - self.committed) if self.committed is not None else 0


async def group_lag(
    bootstrap: str, group: str, *, topics: Sequence[str] | None = None, prefix: str = ""
) -> tuple[PartitionLag, ...]:
    """The group's place in every partition of the topics, in the table's order.

    `group` is the whole name on the broker. `topics` None takes those of the table that the group has ever committed in: () for a
    group nobody knows. Raises Outage.
    """
    names = TopicNames(prefix)
    async with administering(bootstrap) as client:
        committed = await _committed(client, group)
        read = {names.plain(place.topic) for place in committed}
        wanted = [one for one in TOPICS if (one.name in topics if topics is not None else one.name in read)]
        if not wanted:
            return ()
        counts = {names.on_broker(one.name): one.partitions for one in wanted}
        async with reader.reading(bootstrap) as consumer:
            starts = await reader.starts(consumer, counts)
            ends = await reader.ends(consumer, counts)
    return tuple(
        PartitionLag(one.name, place.partition, starts[place], committed.get(place), ends[place])
        for one in wanted
        for place in sorted(ends)
        if place.topic == names.on_broker(one.name)
    )


async def rewind_group(bootstrap: str, group: str, *, topics: Sequence[str], prefix: str = "") -> None:
    """Sets the group to the earliest kept record of the topics, so that all is delivered again.

    Raises StrandlineError while the group has members: they would go on from where they are and commit over it. Raises Outage.
    """
    names = TopicNames(prefix)
    async with administering(bootstrap) as client:
        _, state = await _coordinated(client, group)
        if state not in _WITHOUT_MEMBERS:
            raise StrandlineError(f"group {group} has members (state {state}): stop its workers, then rewind it")
        async with reader.reading(bootstrap, group=group) as consumer:
            places = await reader.starts(consumer, {names.on_broker(name): topic(name).partitions for name in topics})
            consumer.assign(list(places))
            try:
                await consumer.commit(places)
            except CommitFailedError as error:
                raise StrandlineError(
                    f"group {group} got members meanwhile: stop its workers, then rewind it"
                ) from error


async def _coordinated(client: AIOKafkaAdminClient, group: str) -> tuple[int, str]:
    """Which broker coordinates the group, and its state: Stable, PreparingRebalance, CompletingRebalance, Empty, or Dead if unknown.

    Waits while the coordinator is being chosen or loads its offsets, as after a broker's start: it would answer as if there were none.
    """
    while True:
        try:
            coordinator = await client.find_coordinator(group)
            described = (await client.describe_consumer_groups([group], coordinator))[0].to_object()["groups"][0]
            if described["error_code"]:
                raise for_code(described["error_code"])(f"describing group {group}")
        except KafkaError as error:
            if not error.retriable:
                raise
            await asyncio.sleep(_PAUSE_SECONDS)
        else:
            return coordinator, str(described["state"])


async def _committed(client: AIOKafkaAdminClient, group: str) -> dict[TopicPartition, int]:
    coordinator, _ = await _coordinated(client, group)
    found = await client.list_consumer_group_offsets(group, coordinator)
    return {place: entry.offset for place, entry in found.items() if entry.offset >= 0}
