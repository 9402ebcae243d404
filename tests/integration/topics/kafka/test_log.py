"""What `KafkaLog` does on a broker that answers, beyond the contract of `Log`. Outages: test_outages.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from strandline.stack import Addresses
from tests.kafka_topics import create_raw, own_prefix, own_topics
from tests.run_events import TOPIC, number_of, numbered, take
from topics.errors import Outage, Refused
from topics.kafka.admin import administering, cluster_id, ensure_topics
from topics.kafka.log import KafkaLog
from topics.registry import TOPICS, topic

pytestmark = pytest.mark.connected

SHORT = timedelta(seconds=3)


@pytest.fixture
def bootstrap(services: Addresses) -> str:
    return services.kafka_bootstrap


@pytest.fixture
async def prefix(bootstrap: str) -> AsyncIterator[str]:
    async with own_topics(bootstrap) as found:
        yield found


@pytest.fixture
async def log(bootstrap: str, prefix: str) -> AsyncIterator[KafkaLog]:
    async with KafkaLog(bootstrap, prefix=prefix) as opened:
        yield opened


async def test_the_log_id_is_the_clusters_id_unless_configured(bootstrap: str, prefix: str, log: KafkaLog) -> None:
    with pytest.raises(Outage, match="has told the cluster's id"):
        _ = log.log_id
    await log.append([numbered("ada", 0)])
    assert log.log_id == await cluster_id(bootstrap)
    async with KafkaLog(bootstrap, prefix=prefix, log_id="mine") as named:
        assert named.log_id == "mine"


async def test_another_prefix_is_another_log(bootstrap: str, prefix: str, log: KafkaLog) -> None:
    await log.append([numbered("ada", 0)])
    async with own_topics(bootstrap) as other_prefix, KafkaLog(bootstrap, prefix=other_prefix) as other:
        assert sum((await other.ends(TOPIC)).values()) == 0


async def test_a_producer_whose_numbers_have_a_hole_is_replaced_within_the_call(log: KafkaLog) -> None:
    (first,) = await log.append([numbered("ada", 0)])
    producer = await log._producer.get()
    place = TopicPartition(log._names.on_broker(TOPIC), first.partition)
    producer._txn_manager.increment_sequence_number(place, 7)  # as after a batch that was lost

    (second,) = await log.append([numbered("ada", 1)])

    assert await log._producer.get() is not producer
    assert second.offset == first.offset + 1
    assert [number_of(one)[1] for one in await take(log, 2)] == [0, 1]


async def test_all_who_wait_on_a_broken_producer_get_through_on_its_successor(log: KafkaLog) -> None:
    await log.append([numbered(f"user {user}", 0) for user in range(30)])
    producer = await log._producer.get()
    for partition in range(0, 12, 3):
        place = TopicPartition(log._names.on_broker(TOPIC), partition)
        producer._txn_manager.increment_sequence_number(place, 7)

    async def write(user: int) -> None:
        for number in range(1, 10):
            await log.append([numbered(f"user {user}", number)])

    await asyncio.gather(*map(write, range(30)))
    count = sum((await log.ends(TOPIC)).values())
    found = [number_of(one) for one in await take(log, count)]
    # What was under way at the replacement may be there twice; the first of each is in order.
    for user in range(30):
        numbers = [number for name, number in found if name == f"user {user}"]
        assert list(dict.fromkeys(numbers)) == list(range(10))


async def test_a_producer_whose_sending_task_ended_is_replaced(log: KafkaLog) -> None:
    await log.append([numbered("ada", 0)])
    producer = await log._producer.get()
    producer._sender.sender_task.cancel()
    await asyncio.wait({producer._sender.sender_task})
    await log.append([numbered("ada", 1)])
    assert await log._producer.get() is not producer


async def test_an_unexpected_error_in_the_producer_is_mended_within_the_call(
    log: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await log.append([numbered("ada", 0)])
    producer = await log._producer.get()
    real = producer.client.send

    async def fails(*args: object, **kwargs: object) -> object:
        monkeypatch.setattr(producer.client, "send", real)
        raise KafkaError("an error that nobody foresaw")

    monkeypatch.setattr(producer.client, "send", fails)
    await log.append([numbered("ada", 1)])
    assert await log._producer.get() is not producer


async def test_a_missing_topic_is_an_outage_that_ends_when_it_is_created(bootstrap: str) -> None:
    async with own_prefix(bootstrap) as prefix, KafkaLog(bootstrap, prefix=prefix, deadline=SHORT) as log:
        with pytest.raises(Outage, match=rf"topic {prefix}{TOPIC} is missing: run `strandline topics create`"):
            await log.append([numbered("ada", 0)])
        with pytest.raises(Outage, match=rf"topic {prefix}{TOPIC} is missing: run `strandline topics create`"):
            await log.ends(TOPIC)
        await ensure_topics(bootstrap, TOPICS, replication=1, prefix=prefix)
        patient = KafkaLog(bootstrap, prefix=prefix)
        async with patient:
            await patient.append([numbered("ada", 0)])
        (place,) = await log.append([numbered("ada", 1)])
        assert place.offset == 1


async def test_nothing_is_sent_to_a_topic_with_another_partition_count(bootstrap: str) -> None:
    async with own_prefix(bootstrap) as prefix, KafkaLog(bootstrap, prefix=prefix, deadline=SHORT) as log:
        async with administering(bootstrap) as client:
            await create_raw(client, prefix + TOPIC, 6, {})
        with pytest.raises(Outage, match="has 6 partitions instead of 12: run `strandline topics check`"):
            await log.append([numbered("ada", 0)])


async def test_a_record_that_only_the_broker_finds_too_large_is_refused_and_the_log_goes_on(bootstrap: str) -> None:
    async with own_prefix(bootstrap) as prefix, KafkaLog(bootstrap, prefix=prefix) as log:
        async with administering(bootstrap) as client:
            await create_raw(client, prefix + TOPIC, topic(TOPIC).partitions, {"max.message.bytes": "1000"})
        large = numbered("ada" * 1000, 0)
        with pytest.raises(Refused, match="Kafka takes smaller records than the table allows"):
            await log.append([large])
        await log.append([numbered("ada", 0)])


async def test_a_follower_that_is_cancelled_ends_at_once(log: KafkaLog) -> None:
    await log.append([numbered("ada", 0)])
    following = asyncio.create_task(take(log, 2))
    await log.append([numbered("bob", 0)])
    await following
    idle = asyncio.create_task(take(log, 3))
    done, _ = await asyncio.wait({idle}, timeout=0.5)
    assert not done
    idle.cancel()
    async with asyncio.timeout(5):
        await asyncio.wait({idle})
    assert idle.cancelled()


async def test_a_cancelled_append_leaves_the_log_usable(log: KafkaLog) -> None:
    await log.append([numbered("ada", 0)])
    cancelled = asyncio.create_task(log.append([numbered("ada", 1)]))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait({cancelled})
    await log.append([numbered("ada", 2)])
    numbers = [number_of(one)[1] for one in await take(log, sum((await log.ends(TOPIC)).values()))]
    assert numbers in ([0, 2], [0, 1, 2])


async def test_records_that_are_queued_when_the_log_closes_are_delivered(bootstrap: str, prefix: str) -> None:
    async with KafkaLog(bootstrap, prefix=prefix) as log:
        await log.start()
        waiting = asyncio.create_task(log.append([numbered("ada", number) for number in range(100)]))
        await asyncio.sleep(0)
    await asyncio.wait({waiting})
    async with KafkaLog(bootstrap, prefix=prefix) as log:
        delivered = sum((await log.ends(TOPIC)).values())
    assert delivered == (0 if waiting.exception() else 100)
