"""The log while its broker is killed, frozen and away. The broker is the module's own."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta
from typing import TypeVar
from uuid import UUID

import pytest

from strandline.stack import NativeStack
from tests.kafka_topics import own_prefix
from tests.run_events import FROM_THE_START, TOPIC, number_of, numbered, record_id, take
from tests.services import native_stack
from topics.envelope import Incoming
from topics.errors import Outage
from topics.kafka.admin import ensure_topics
from topics.kafka.groups import group_lag
from topics.kafka.log import KafkaLog
from topics.registry import TOPICS

pytestmark = [
    pytest.mark.connected,
    pytest.mark.timeout(300),
    # aiokafka forgets a connection when its making is cancelled, as a deadline does; it is closed when it is collected.
    pytest.mark.filterwarnings("ignore:Unclosed AIOKafkaConnection:ResourceWarning"),
]

T = TypeVar("T")

SHORT = timedelta(seconds=2)
KEYS = [f"user {number}" for number in range(16)]


@pytest.fixture(scope="module")
def stack() -> Iterator[NativeStack]:
    with native_stack() as own:
        own.up(("kafka",))
        yield own


@pytest.fixture
def bootstrap(stack: NativeStack) -> Iterator[str]:
    stack.start("kafka")
    yield stack.addresses.kafka_bootstrap
    stack.start("kafka")


@pytest.fixture
async def prefix(bootstrap: str, stack: NativeStack) -> AsyncIterator[str]:
    async with own_prefix(bootstrap) as found:
        await ensure_topics(bootstrap, TOPICS, replication=1, prefix=found)
        yield found
        await asyncio.to_thread(stack.start, "kafka")


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    yield
    gc.collect()  # here, where the filter above holds


async def kill(stack: NativeStack) -> None:
    await asyncio.to_thread(stack.kill, "kafka")


async def start(stack: NativeStack) -> None:
    await asyncio.to_thread(stack.start, "kafka")


async def patiently(attempt: Callable[[], Awaitable[T]]) -> T:
    """As a stage does it: an outage is waited for, then the same is tried again."""
    async with asyncio.timeout(120):
        while True:
            try:
                return await attempt()
            except Outage:
                continue


async def append_until_durable(log: KafkaLog, user: str, number: int) -> None:
    await patiently(lambda: log.append([numbered(user, number)]))


async def all_numbers(log: KafkaLog) -> list[int]:
    """Of the records that lie there, in their order."""
    count = sum((await patiently(lambda: log.ends(TOPIC))).values())
    return [number_of(one)[1] for one in await take(log, count)]


class Collector:
    """Follows the topic and keeps all it gets."""

    def __init__(self, log: KafkaLog) -> None:
        self.found: list[Incoming] = []
        self.different: set[UUID] = set()
        self._grown = asyncio.Condition()
        self._task = asyncio.create_task(self._follow(log))

    async def _follow(self, log: KafkaLog) -> None:
        async for incoming in log.follow(TOPIC, FROM_THE_START):
            self.found.append(incoming)
            self.different.add(record_id(incoming))
            async with self._grown:
                self._grown.notify_all()

    async def more(self, count: int) -> None:
        """Waits until it has so many further records."""
        await self.until(len(self.different) + count)

    async def until(self, count: int) -> None:
        """Waits until it has so many different records."""
        async with asyncio.timeout(60), self._grown:
            await self._grown.wait_for(lambda: len(self.different) >= count)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})


async def test_nothing_is_lost_or_disordered_while_the_broker_is_killed_in_a_flow(
    stack: NativeStack, bootstrap: str, prefix: str
) -> None:
    log = KafkaLog(bootstrap, prefix=prefix, deadline=SHORT)
    collector = Collector(log)
    stopping = asyncio.Event()

    async def write(user: str) -> int:
        number = 0
        while not stopping.is_set():
            await append_until_durable(log, user, number)
            number += 1
        return number

    async with log:
        writers = [asyncio.create_task(write(user)) for user in KEYS]
        for _ in range(3):
            await collector.more(500)
            await kill(stack)
            await start(stack)
        await collector.more(500)
        stopping.set()
        counts = dict(zip(KEYS, await asyncio.gather(*writers), strict=True))
        await collector.until(sum(counts.values()))
        await collector.stop()

    found = collector.found
    # The follower: no gap and no repeat, in order.
    for partition in range(12):
        offsets = [one.offset for one in found if one.partition == partition]
        assert offsets == list(range(len(offsets)))
    # The log: every confirmed record is there, and per key the first of each is in order; repeats are repeats of the newest.
    for user, count in counts.items():
        numbers = [number for name, number in map(number_of, found) if name == user]
        assert list(dict.fromkeys(numbers)) == list(range(count))
        assert numbers == sorted(numbers)
    repeats = sum(times - 1 for times in Counter(map(record_id, found)).values())
    assert repeats <= len(KEYS) * 3 * 20  # at most one for each key and each try in an outage


async def test_a_process_that_starts_while_the_broker_is_down_appends_once_it_is_back(
    stack: NativeStack, bootstrap: str, prefix: str
) -> None:
    await kill(stack)
    async with KafkaLog(bootstrap, prefix=prefix, deadline=SHORT) as log:
        for attempt in (log.start(), log.append([numbered("ada", 0)]), log.ends(TOPIC)):
            with pytest.raises(Outage, match=f"Kafka at {bootstrap}, within 2 s: .*(Unable to bootstrap|no answer)"):
                await attempt
        follower = asyncio.create_task(take(log, 1, seconds=120))
        await start(stack)
        await append_until_durable(log, "ada", 0)
        assert [number_of(one) for one in await follower] == [("ada", 0)]
        assert log.log_id


async def test_a_frozen_broker_is_an_outage_and_what_was_queued_arrives_in_order(
    stack: NativeStack, bootstrap: str, prefix: str
) -> None:
    async with KafkaLog(bootstrap, prefix=prefix, deadline=SHORT) as log:
        await append_until_durable(log, "ada", 0)
        process = stack.process("kafka")
        assert process is not None
        os.kill(process.pid, signal.SIGSTOP)
        number = 1
        try:
            with pytest.raises(Outage, match="1 records unconfirmed, repeat them with the same ids"):  # noqa: PT012
                while True:  # a thread of the broker may answer once more before the signal reaches it
                    await log.append([numbered("ada", number)])
                    number += 1
        finally:
            os.kill(process.pid, signal.SIGCONT)
        for later in (number, number + 1):
            await append_until_durable(log, "ada", later)
        numbers = await all_numbers(log)
        assert list(dict.fromkeys(numbers)) == list(range(number + 2))
        assert numbers == sorted(numbers)


async def test_a_log_closes_while_the_broker_is_down_with_records_queued(
    stack: NativeStack, bootstrap: str, prefix: str
) -> None:
    log = KafkaLog(bootstrap, prefix=prefix, deadline=SHORT)
    await append_until_durable(log, "ada", 0)
    await kill(stack)
    with pytest.raises(Outage):
        await log.append([numbered("ada", 1)])
    waiting = asyncio.create_task(log.append([numbered("ada", 2)]))
    async with asyncio.timeout(30):  # without a bound of its own, close would wait for ever
        await log.close()
        await asyncio.wait({waiting})
    assert isinstance(waiting.exception(), Outage)


async def test_a_producer_that_has_delivered_nothing_for_long_is_replaced(
    stack: NativeStack, bootstrap: str, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topics.kafka.log._REPLACE_AFTER", timedelta(0))
    async with KafkaLog(bootstrap, prefix=prefix, deadline=SHORT) as log:
        await append_until_durable(log, "ada", 0)
        producer = await log._producer.get()
        await kill(stack)
        for _ in range(2):
            with pytest.raises(Outage):
                await log.append([numbered("ada", 1)])
        assert log._producer._producer is not producer
        await start(stack)
        await append_until_durable(log, "ada", 1)


async def test_a_groups_place_is_known_again_right_after_the_broker_is(
    stack: NativeStack, bootstrap: str, prefix: str
) -> None:
    async with KafkaLog(bootstrap, prefix=prefix) as log:
        await log.append([numbered("ada", number) for number in range(3)])
    before = await group_lag(bootstrap, f"{prefix}g", topics=[TOPIC], prefix=prefix)
    await kill(stack)
    await start(stack)
    assert await group_lag(bootstrap, f"{prefix}g", topics=[TOPIC], prefix=prefix) == before
