"""What every `Log` does, whatever keeps the records."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Protocol

import pytest

from strandline.stack import Addresses
from tests.kafka_topics import own_topics
from tests.run_events import FROM_THE_START, TOPIC, number_of, numbered, take
from tests.sample_records import sample, sample_outgoing
from topics.codec import decode, encode
from topics.errors import Outage, Refused
from topics.kafka.log import KafkaLog
from topics.keys import partition_of
from topics.log import Log, Place
from topics.registry import STAGE_PARTITIONS, TOPICS, topic

type_names = [spec.name for spec in TOPICS]


class OpenLog(Protocol):
    """Opens the same log again and again: as after a restart, or from another process."""

    def __call__(self) -> AbstractAsyncContextManager[Log]: ...


@asynccontextmanager
async def on_kafka(request: pytest.FixtureRequest) -> AsyncIterator[OpenLog]:
    services: Addresses = request.getfixturevalue("services")
    async with own_topics(services.kafka_bootstrap) as prefix:

        @asynccontextmanager
        async def open_log() -> AsyncIterator[Log]:
            async with KafkaLog(services.kafka_bootstrap, prefix=prefix) as log:
                await log.start()
                yield log

        yield open_log


_HOSTS: dict[str, Callable[[pytest.FixtureRequest], AbstractAsyncContextManager[OpenLog]]] = {"kafka": on_kafka}


@pytest.fixture(params=[pytest.param("kafka", marks=pytest.mark.connected)])
async def open_log(request: pytest.FixtureRequest) -> AsyncIterator[OpenLog]:
    async with _HOSTS[request.param](request) as opener:
        yield opener


@pytest.fixture
async def log(open_log: OpenLog) -> AsyncIterator[Log]:
    async with open_log() as opened:
        yield opened


async def test_places_come_in_the_order_of_the_records_and_offsets_grow(log: Log) -> None:
    places = await log.append([numbered("ada", number) for number in range(5)])
    assert [place.offset for place in places] == list(range(5))
    assert {(place.topic, place.partition) for place in places} == {
        (TOPIC, partition_of(numbered("ada", 0).record.key.encode(), STAGE_PARTITIONS))
    }


async def test_a_key_lies_on_the_same_partition_of_every_topic(log: Log) -> None:
    places = await log.append([sample_outgoing(name) for name in type_names])
    assert len({place.partition for place in places}) == 1
    assert [place.topic for place in places] == type_names


async def test_appending_nothing_gives_nothing(log: Log) -> None:
    assert list(await log.append([])) == []


@pytest.mark.parametrize("name", type_names)
async def test_a_record_is_followed_with_key_value_headers_and_time(log: Log, name: str) -> None:
    outgoing = sample_outgoing(name)
    (place,) = await log.append([outgoing])
    (incoming,) = await take(log, 1, topic=name)
    assert Place(incoming.topic, incoming.partition, incoming.offset) == place
    assert decode(incoming) == sample(name)
    encoded = encode(outgoing)
    assert (incoming.key, incoming.value, incoming.headers) == (encoded.key, encoded.value, encoded.headers)
    assert incoming.timestamp is not None
    assert incoming.timestamp.tzinfo is not None


async def test_following_goes_on_with_what_is_appended_later(log: Log) -> None:
    following = asyncio.create_task(take(log, 6))
    for number in range(6):
        await log.append([numbered("ada", number)])
    assert [number_of(one) for one in await following] == [("ada", number) for number in range(6)]


async def test_a_start_is_inclusive(log: Log) -> None:
    places = await log.append([numbered("ada", number) for number in range(10)])
    found = await take(log, 3, {places[7].partition: places[7].offset})
    assert [number_of(one)[1] for one in found] == [7, 8, 9]


async def test_partitions_that_are_not_named_start_at_their_end(log: Log) -> None:
    await log.append([numbered("ada", number) for number in range(5)])
    ends = await log.ends(TOPIC)
    following = asyncio.create_task(take(log, 1, {}))
    # When the follower has found the ends cannot be seen from outside, so records come until it has one.
    number = 5
    while not following.done():
        await log.append([numbered("ada", number)])
        number += 1
    (found,) = await following
    assert found.offset >= ends[found.partition]


async def test_a_start_below_zero_begins_at_the_earliest(log: Log) -> None:
    await log.append([numbered("ada", 0)])
    assert len(await take(log, 1, dict.fromkeys(FROM_THE_START, -5))) == 1


async def test_a_start_past_the_end_begins_at_the_earliest(log: Log) -> None:
    await log.append([numbered("ada", 0)])
    assert len(await take(log, 1, dict.fromkeys(FROM_THE_START, 1_000_000))) == 1


async def test_a_start_in_a_partition_that_does_not_exist_is_refused(log: Log) -> None:
    with pytest.raises(Refused, match=f"not {STAGE_PARTITIONS}"):
        await take(log, 1, {STAGE_PARTITIONS: 0})


async def test_every_follower_sees_every_record(log: Log) -> None:
    followers = [asyncio.create_task(take(log, 40)) for _ in range(3)]
    await log.append([numbered(f"user {number % 8}", number) for number in range(40)])
    seen = [sorted(number_of(one) for one in await follower) for follower in followers]
    assert seen[0] == seen[1] == seen[2]
    assert len(set(seen[0])) == 40


async def test_ends_are_the_offsets_of_the_next_records(log: Log) -> None:
    assert await log.ends(TOPIC) == FROM_THE_START
    await log.append([numbered(f"user {number}", number) for number in range(30)])
    before = await log.ends(TOPIC)
    assert sum(before.values()) == 30
    (place,) = await log.append([numbered("ada", 0)])
    assert place.offset == before[place.partition]
    assert (await log.ends(TOPIC))[place.partition] == place.offset + 1


async def test_order_is_kept_per_key_while_many_append_at_once(log: Log) -> None:
    async def write(user: str) -> None:
        for first in range(0, 60, 3):
            await log.append([numbered(user, first + more) for more in range(3)])

    users = [f"user {number}" for number in range(40)]
    await asyncio.gather(*map(write, users))
    numbers: dict[str, list[int]] = defaultdict(list)
    for incoming in await take(log, 40 * 60):
        user, number = number_of(incoming)
        numbers[user].append(number)
    assert numbers == {user: list(range(60)) for user in users}


async def test_order_is_kept_among_records_of_very_different_size(log: Log) -> None:
    records = [
        replace(numbered("ada", number), subject="s" * size)
        for number, size in enumerate([0, 2_000_000, 0, 100_000, 300_000, 0, 5_000_000, 0])
    ]
    places = await log.append(records)
    assert [place.offset for place in places] == list(range(8))
    assert [number_of(one)[1] for one in await take(log, 8)] == list(range(8))


async def test_a_record_that_is_too_large_is_refused_and_nothing_of_its_call_is_sent(log: Log) -> None:
    large = replace(numbered("ada", 1), subject="s" * topic(TOPIC).max_bytes)
    with pytest.raises(Refused, match="more than"):
        await log.append([numbered("ada", 0), large, numbered("bob", 0)])
    assert await log.ends(TOPIC) == FROM_THE_START


async def test_the_largest_record_that_is_accepted_gets_through(log: Log) -> None:
    outgoing = numbered("ada", 0)
    room = topic(TOPIC).max_bytes - sum(len(part) for part in encode(outgoing)[1:3]) - 4096
    await log.append([replace(outgoing, subject="s" * room)])
    (incoming,) = await take(log, 1)
    assert number_of(incoming) == ("ada", 0)


async def test_a_log_that_is_opened_again_has_the_same_id_and_records(open_log: OpenLog) -> None:
    async with open_log() as first:
        log_id = first.log_id
        await first.append([numbered("ada", 0)])
    async with open_log() as second:
        assert second.log_id == log_id
        (place,) = await second.append([numbered("ada", 1)])
        assert place.offset == 1
        assert [number_of(one)[1] for one in await take(second, 2)] == [0, 1]


async def test_a_closed_log_takes_no_records_and_can_be_closed_again(open_log: OpenLog) -> None:
    async with open_log() as opened:
        await opened.close()
        with pytest.raises(Outage, match="closed"):
            await opened.append([numbered("ada", 0)])
        await opened.close()
