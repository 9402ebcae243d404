from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition

from strandline.stack import Addresses
from tests.kafka_topics import own_topics
from tests.run_events import TOPIC, numbered
from topics.errors import StrandlineError
from topics.kafka.groups import PartitionLag, group_lag, rewind_group
from topics.kafka.log import KafkaLog
from topics.registry import STAGE_PARTITIONS

pytestmark = pytest.mark.connected


@pytest.fixture
def bootstrap(services: Addresses) -> str:
    return services.kafka_bootstrap


@pytest.fixture
async def prefix(bootstrap: str) -> AsyncIterator[str]:
    async with own_topics(bootstrap) as found:
        yield found


async def read_and_commit(bootstrap: str, prefix: str, count: int) -> AIOKafkaConsumer:
    """A member of the group `<prefix>g` that has read and committed so many records."""
    consumer = AIOKafkaConsumer(
        prefix + TOPIC,
        bootstrap_servers=bootstrap,
        group_id=f"{prefix}g",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    await consumer.start()
    async with asyncio.timeout(30):
        for _ in range(count):
            await consumer.getone()
    await consumer.commit()
    return consumer


def waiting(lags: tuple[PartitionLag, ...]) -> int:
    return sum(lag.behind for lag in lags)


async def test_a_group_that_nobody_knows_has_no_place(bootstrap: str, prefix: str) -> None:
    assert await group_lag(bootstrap, f"{prefix}g", prefix=prefix) == ()


async def test_a_group_that_never_committed_is_behind_by_all(bootstrap: str, prefix: str) -> None:
    async with KafkaLog(bootstrap, prefix=prefix) as log:
        await log.append([numbered("ada", number) for number in range(5)])
    lags = await group_lag(bootstrap, f"{prefix}g", topics=[TOPIC], prefix=prefix)
    assert [lag.partition for lag in lags] == list(range(STAGE_PARTITIONS))
    assert waiting(lags) == 5
    assert {lag.committed for lag in lags} == {None}


async def test_lag_is_what_was_written_and_not_committed(bootstrap: str, prefix: str) -> None:
    async with KafkaLog(bootstrap, prefix=prefix) as log:
        await log.append([numbered(f"user {number}", number) for number in range(30)])
        await (await read_and_commit(bootstrap, prefix, 30)).stop()
        assert waiting(await group_lag(bootstrap, f"{prefix}g", prefix=prefix)) == 0
        await log.append([numbered(f"user {number}", number) for number in range(7)])
    lags = await group_lag(bootstrap, f"{prefix}g", prefix=prefix)
    assert {lag.topic for lag in lags} == {TOPIC}
    assert waiting(lags) == 7


async def test_a_rewound_group_gets_everything_again(bootstrap: str, prefix: str) -> None:
    async with KafkaLog(bootstrap, prefix=prefix) as log:
        await log.append([numbered(f"user {number}", number) for number in range(30)])
    await (await read_and_commit(bootstrap, prefix, 30)).stop()
    await rewind_group(bootstrap, f"{prefix}g", topics=[TOPIC], prefix=prefix)
    assert waiting(await group_lag(bootstrap, f"{prefix}g", prefix=prefix)) == 30
    await (await read_and_commit(bootstrap, prefix, 30)).stop()


async def test_a_group_with_members_is_not_rewound(bootstrap: str, prefix: str) -> None:
    async with KafkaLog(bootstrap, prefix=prefix) as log:
        await log.append([numbered("ada", 0)])
    member = await read_and_commit(bootstrap, prefix, 1)
    try:
        with pytest.raises(StrandlineError, match=f"group {prefix}g has members .*stop its workers"):
            await rewind_group(bootstrap, f"{prefix}g", topics=[TOPIC], prefix=prefix)
        places = [TopicPartition(prefix + TOPIC, partition) for partition in range(STAGE_PARTITIONS)]
        assert sum([await member.committed(place) or 0 for place in places]) == 1
    finally:
        await member.stop()


async def test_a_topic_that_is_missing_is_named(bootstrap: str) -> None:
    async with own_topics(bootstrap, []) as prefix:
        with pytest.raises(StrandlineError, match=f"topic {prefix}{TOPIC} is missing"):
            await group_lag(bootstrap, f"{prefix}g", topics=[TOPIC], prefix=prefix)
