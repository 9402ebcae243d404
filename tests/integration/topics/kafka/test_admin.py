from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from strandline.stack import Addresses
from tests.kafka_topics import create_raw, own_prefix, own_topics
from topics.errors import Outage, StrandlineError, TopicDrift
from topics.kafka.admin import administering, check_topics, cluster_id, ensure_topics
from topics.registry import TOPICS, topic

pytestmark = pytest.mark.connected

NAMES = tuple(spec.name for spec in TOPICS)


@pytest.fixture
def bootstrap(services: Addresses) -> str:
    return services.kafka_bootstrap


@pytest.fixture
async def prefix(bootstrap: str) -> AsyncIterator[str]:
    async with own_prefix(bootstrap) as found:
        yield found


async def test_what_is_missing_is_created_once(bootstrap: str, prefix: str) -> None:
    assert await ensure_topics(bootstrap, TOPICS, replication=1, prefix=prefix) == NAMES
    assert await ensure_topics(bootstrap, TOPICS, replication=1, prefix=prefix) == ()
    assert await check_topics(bootstrap, TOPICS, replication=1, prefix=prefix) == ()


async def test_several_processes_may_create_at_once(bootstrap: str, prefix: str) -> None:
    await asyncio.gather(*(ensure_topics(bootstrap, TOPICS, replication=1, prefix=prefix) for _ in range(4)))
    assert await check_topics(bootstrap, TOPICS, replication=1, prefix=prefix) == ()


async def test_only_the_missing_ones_are_created(bootstrap: str, prefix: str) -> None:
    await ensure_topics(bootstrap, TOPICS[:3], replication=1, prefix=prefix)
    assert await ensure_topics(bootstrap, TOPICS, replication=1, prefix=prefix) == NAMES[3:]


async def test_checking_creates_nothing_and_names_each_missing_topic(bootstrap: str, prefix: str) -> None:
    differences = await check_topics(bootstrap, TOPICS, replication=1, prefix=prefix)
    assert differences == tuple(f"topic {prefix}{name} is missing: run `strandline topics create`" for name in NAMES)
    async with administering(bootstrap) as client:
        assert not [name for name in await client.list_topics() if name.startswith(prefix)]


async def test_each_difference_is_named_with_what_to_do_and_nothing_is_changed(bootstrap: str, prefix: str) -> None:
    runs, graph_changes = topic("remember.runs").config(), topic("graph.changes").config()
    async with administering(bootstrap) as client:
        await create_raw(client, f"{prefix}remember.runs", 6, runs | {"retention.ms": "1000"})
        await create_raw(client, f"{prefix}graph.changes", 12, graph_changes | {"cleanup.policy": "compact"})
    with pytest.raises(TopicDrift) as caught:
        await ensure_topics(bootstrap, TOPICS, replication=1, prefix=prefix)
    changes, partitions, retention = caught.value.differences
    assert f"topic {prefix}graph.changes has cleanup.policy=compact, the table says delete: kafka-configs.sh" in changes
    assert f"--entity-name {prefix}graph.changes --add-config cleanup.policy=delete" in changes
    assert f"topic {prefix}remember.runs has 6 partitions, the table says 12" in partitions
    assert f"topic {prefix}remember.runs has retention.ms=1000, the table says 604800000" in retention
    assert all(one in str(caught.value) for one in caught.value.differences)
    assert await check_topics(bootstrap, TOPICS, replication=1, prefix=prefix) == caught.value.differences


async def test_fewer_replicas_than_the_settings_ask_for_are_a_difference(bootstrap: str) -> None:
    async with own_topics(bootstrap, TOPICS[:1]) as prefix:
        differences = await check_topics(bootstrap, TOPICS[:1], replication=2, prefix=prefix)
    assert "has 1 replicas, the settings say 2" in differences[0]
    assert "min.insync.replicas=1, the table says 2" in differences[1]


async def test_more_replicas_than_brokers_are_refused_with_the_setting_to_change(bootstrap: str, prefix: str) -> None:
    with pytest.raises(StrandlineError, match="too few brokers for 99 replicas: set STRANDLINE_KAFKA__REPLICATION"):
        await ensure_topics(bootstrap, TOPICS, replication=99, prefix=prefix)


async def test_a_broker_that_is_not_there_is_an_outage() -> None:
    with pytest.raises(Outage, match=r"127\.0\.0\.1:1 "):
        await cluster_id("127.0.0.1:1")
