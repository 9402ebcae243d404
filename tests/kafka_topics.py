"""Topics of a test's own on a shared broker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import uuid4

from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from topics.kafka.admin import administering, ensure_topics
from topics.registry import TOPICS, TopicSpec


@asynccontextmanager
async def own_topics(bootstrap: str, specs: Sequence[TopicSpec] = TOPICS) -> AsyncIterator[str]:
    """Creates the topics under a fresh prefix, gives the prefix, and deletes all that has it afterwards."""
    async with own_prefix(bootstrap) as prefix:
        await ensure_topics(bootstrap, specs, replication=1, prefix=prefix)
        yield prefix


@asynccontextmanager
async def own_prefix(bootstrap: str) -> AsyncIterator[str]:
    """A fresh prefix; topics that have it are deleted afterwards."""
    prefix = f"t{uuid4().hex[:12]}."
    try:
        yield prefix
    finally:
        async with administering(bootstrap) as client:
            mine = [name for name in await client.list_topics() if name.startswith(prefix)]
            if mine:
                await client.delete_topics(mine)


async def create_raw(client: AIOKafkaAdminClient, name: str, partitions: int, config: dict[str, str]) -> None:
    """A topic that need not be as the table says."""
    response = await client.create_topics([NewTopic(name, partitions, 1, topic_configs=config)])
    assert [code for _, code, _ in response.topic_errors] == [0]
