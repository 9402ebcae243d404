"""Reading without a group: the ends of a topic, and records followed from given offsets through broker restarts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta

import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError
from aiokafka.structs import ConsumerRecord

from topics.envelope import Incoming
from topics.errors import Refused, StrandlineError
from topics.kafka.names import TopicNames
from topics.kafka.producer import REQUEST_TIMEOUT
from topics.registry import topic as spec_of

log = structlog.get_logger(__name__)

_RECONNECT_AFTER_IDLE = timedelta(minutes=5)
"""A consumer learns the brokers' addresses only at its start and is silent, not failing, when all have moved: so an idle one is renewed."""

_LONGEST_PAUSE_SECONDS = 5.0


@asynccontextmanager
async def reading(bootstrap: str, *, group: str | None = None) -> AsyncIterator[AIOKafkaConsumer]:
    """A started consumer that joins no group; `group` only names whose offsets it may commit. KafkaError if no broker answers."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        request_timeout_ms=int(REQUEST_TIMEOUT.total_seconds() * 1000),
        metadata_max_age_ms=30_000,
    )
    try:
        await consumer.start()
        yield consumer
    finally:
        # Bounded: with the broker away the connection's farewell may never be answered.
        stopping = asyncio.ensure_future(consumer.stop())
        await asyncio.wait({stopping}, timeout=2)
        stopping.cancel()


async def ends(consumer: AIOKafkaConsumer, topics: Mapping[str, int]) -> dict[TopicPartition, int]:
    """Per partition the offset that the next record will get. topics: names on the broker with their partition counts.

    StrandlineError for a topic that is missing, which Kafka's own call would wait for without end.
    """
    found: dict[TopicPartition, int] = await consumer.end_offsets(await _partitions(consumer, topics))
    return found


async def starts(consumer: AIOKafkaConsumer, topics: Mapping[str, int]) -> dict[TopicPartition, int]:
    """Per partition the earliest offset kept; otherwise like `ends`."""
    found: dict[TopicPartition, int] = await consumer.beginning_offsets(await _partitions(consumer, topics))
    return found


async def _partitions(consumer: AIOKafkaConsumer, topics: Mapping[str, int]) -> list[TopicPartition]:
    there = await consumer.topics()
    for name in topics:
        if name not in there:
            raise StrandlineError(f"topic {name} is missing: run `strandline topics create`")
    return [TopicPartition(name, partition) for name, count in topics.items() for partition in range(count)]


async def follow(
    bootstrap: str, names: TopicNames, topic: str, start: Mapping[int, int], *, deadline: timedelta
) -> AsyncGenerator[Incoming, None]:
    """`Log.follow` on Kafka. An outage is waited for, however long; each record is given once, whatever the connection does."""
    spec = spec_of(topic)
    unknown = sorted(set(start) - set(range(spec.partitions)))
    if unknown:
        raise Refused(f"{topic} has partitions 0 to {spec.partitions - 1}, not {unknown[0]}", field="start")
    next_offsets = {partition: max(0, offset) for partition, offset in start.items()}
    pause = 0.2
    while True:
        try:
            async with reading(bootstrap) as consumer:
                async with asyncio.timeout(deadline.total_seconds()):
                    await _seek(consumer, names.on_broker(topic), spec.partitions, next_offsets)
                async with aclosing(_records(consumer)) as records:
                    async for record in records:
                        pause = 0.2
                        next_offsets[record.partition] = record.offset + 1
                        yield _incoming(topic, record)
        except (KafkaError, OSError, StrandlineError) as error:
            log.warning("log.follow_waits", topic=topic, error=str(error) or type(error).__name__, pause_s=pause)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)


async def _seek(consumer: AIOKafkaConsumer, name: str, partitions: int, next_offsets: dict[int, int]) -> None:
    """Sets the places to read from; fills `next_offsets` with the ends of the partitions it lacks, so that a reconnect knows them."""
    if len(next_offsets) < partitions:
        for place, end in (await ends(consumer, {name: partitions})).items():
            next_offsets.setdefault(place.partition, end)
    consumer.assign([TopicPartition(name, partition) for partition in next_offsets])
    for partition, offset in next_offsets.items():
        consumer.seek(TopicPartition(name, partition), offset)


async def _records(consumer: AIOKafkaConsumer) -> AsyncGenerator[ConsumerRecord[bytes | None, bytes | None], None]:
    """Ends after a long silence."""
    clock = asyncio.get_running_loop().time
    heard_at = clock()
    while clock() - heard_at < _RECONNECT_AFTER_IDLE.total_seconds():
        for batch in (await consumer.getmany(timeout_ms=1000)).values():
            for record in batch:
                yield record
            heard_at = clock()


def _incoming(topic: str, record: ConsumerRecord[bytes | None, bytes | None]) -> Incoming:
    stamped = record.timestamp >= 0
    return Incoming(
        topic=topic,
        partition=record.partition,
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=tuple((name, value or b"") for name, value in record.headers),  # Kafka allows null
        timestamp=datetime.fromtimestamp(record.timestamp / 1000, UTC) if stamped else None,
    )
