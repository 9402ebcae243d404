"""A service that is killed is an outage, and is found again by the same clients when it is back, with what was written."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import numpy as np
import pytest

from graph.model import Verdict
from graph.neo4j.schema import migrate
from graph.neo4j.store import Neo4jGraphStore
from graph.protocols import IndexRow
from strandline.stack import NativeStack
from tests.contract.backends import DIMENSION, neo4j_database, weaviate_index
from tests.contract.graph_rows import admitted, fact, fresh_key, write
from topics.errors import Outage, Retryable

pytestmark = [pytest.mark.connected, pytest.mark.timeout(300)]


async def eventually(call: Callable[[], Awaitable[object]]) -> None:
    """Repeats what an outage breaks, as a lane does."""
    async with asyncio.timeout(60):
        while True:
            try:
                await call()
                return
            except Retryable:
                await asyncio.sleep(0.2)


async def test_the_graph_and_the_index_come_back_with_what_was_written(own_stack: NativeStack) -> None:
    addresses = await asyncio.to_thread(own_stack.up, ["neo4j", "weaviate"])
    database, index = neo4j_database(addresses), weaviate_index(addresses)
    await migrate(database)
    await index.ensure()
    store, key = Neo4jGraphStore(database), fresh_key()
    plan = write(key, 1, facts=[fact(key, "Ada", "works_at", "Acme")])
    row = IndexRow(key, "Fact", plan.new_facts[0].id, "Ada works at Acme", np.eye(1, DIMENSION, dtype=np.float32)[0])
    await admitted(store, key, "text 1")
    await store.apply([plan])
    await index.put([row])

    for name in ("neo4j", "weaviate"):
        await asyncio.to_thread(own_stack.kill, name)
    with pytest.raises(Outage):
        await store.apply([plan])
    with pytest.raises(Outage):
        await index.put([row])

    for name in ("neo4j", "weaviate"):
        await asyncio.to_thread(own_stack.start, name)
    await eventually(lambda: store.apply([plan]))
    await eventually(lambda: index.put([row]))
    (outcome,) = await store.apply([plan])
    assert outcome.verdict is Verdict.SKIPPED
    assert len(await store.stored_writes(key, [1])) == 1
    assert await index.by_words(key, "Fact", "acme", 5) == [row.id]
    await index.close()
    await database.close()
