"""How far a consumer group is, and setting it back to the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import CommitFailedError, for_code

from topics.errors import Outage, StrandlineError
from topics.kafka import reader
from topics.kafka.admin import administering
from topics.kafka.names import TopicNames
from topics.registry import TOPICS

_WITHOUT_MEMBERS = ("Empty", "Dead")


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
        wanted = [one.name for one in TOPICS if (one.name in topics if topics is not None else one.name in read)]
        on_broker = [names.on_broker(name) for name in wanted]
        if not on_broker:
            return ()
        async with reader.reading(bootstrap) as consumer:
            starts = await reader.starts(consumer, on_broker)
            ends = await reader.ends(consumer, on_broker)
    return tuple(
        PartitionLag(name, place.partition, starts[place], committed.get(place), ends[place])
        for name in wanted
        for place in sorted(ends)
        if place.topic == names.on_broker(name)
    )


async def rewind_group(bootstrap: str, group: str, *, topics: Sequence[str], prefix: str = "") -> None:
    """Sets the group to the earliest kept record of the topics, so that all is delivered again.

    Raises StrandlineError while the group has members: they would go on from where they are and commit over it. Raises Outage.
    """
    names = TopicNames(prefix)
    async with administering(bootstrap) as client:
        if (state := await _state(client, group)) not in _WITHOUT_MEMBERS:
            raise StrandlineError(f"group {group} has members (state {state}): stop its workers, then rewind it")
        async with reader.reading(bootstrap, group=group) as consumer:
            places = await reader.starts(consumer, [names.on_broker(name) for name in topics])
            consumer.assign(list(places))
            try:
                await consumer.commit(places)
            except CommitFailedError as error:
                raise StrandlineError(
                    f"group {group} got members meanwhile: stop its workers, then rewind it"
                ) from error


async def _committed(client: AIOKafkaAdminClient, group: str) -> dict[TopicPartition, int]:
    found = await client.list_consumer_group_offsets(group)
    return {place: entry.offset for place, entry in found.items() if entry.offset >= 0}


async def _state(client: AIOKafkaAdminClient, group: str) -> str:
    """Kafka's word for it: Stable, PreparingRebalance, CompletingRebalance, Empty, or Dead for a group that does not exist."""
    for response in await client.describe_consumer_groups([group]):
        for described in response.to_object()["groups"]:
            if described["error_code"]:
                raise for_code(described["error_code"])(f"describing group {group}")
            return str(described["state"])
    raise Outage("kafka", f"no broker describes group {group}")
