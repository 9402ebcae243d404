"""The whole pipeline, worker as a process, on the real services: what is produced straight to a topic, and models that fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import MessageSizeTooLargeError
from neo4j import AsyncDriver

from strandline.stack import Addresses
from tests.chaos.fleet import fleet, worker_environment
from tests.chaos.flow import outgoing_request
from tests.chaos.verifier import driver_of
from topics import ids
from topics.kafka.admin import ensure_topics
from topics.kafka.log import KafkaLog
from topics.keys import DatasetKey
from topics.records import DeadLetter, RememberRequest
from topics.registry import TOPICS

pytestmark = [pytest.mark.connected, pytest.mark.timeout(300)]


@dataclass
class Pipeline:
    """A running worker and ways to feed and ask it."""

    bootstrap: str
    prefix: str
    log: KafkaLog
    graph: AsyncDriver
    key: DatasetKey

    async def remember(self, text: str, *, number: int = 0) -> str:
        now = datetime.now(UTC)
        request = RememberRequest(
            user_id=self.key.user_id,
            dataset=self.key.dataset,
            run_id=ids.run_id(self.key, "api", f"k{number}", text),
            idempotency_key=f"k{number}",
            request_hash=text,
            text=text,
            reference_time=now,
            accepted_at=now,
        )
        await self.log.append([outgoing_request(request)])
        return str(request.run_id)

    async def produce(self, topic: str, value: bytes, key: bytes) -> None:
        """As a stranger would: no codec, no rules."""
        producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap, max_request_size=32 * 2**20)
        await producer.start()
        try:
            await producer.send_and_wait(self.prefix + topic, value, key=key)
        finally:
            await producer.stop()

    async def state(self, run_id: str, *wanted: str) -> dict[str, object]:
        """The run's row once its state is one of those wanted."""
        async with asyncio.timeout(120):
            while True:
                found, _, _ = await self.graph.execute_query(
                    "MATCH (r:Run {run_id: $run}) RETURN r{.*} AS r", run=run_id
                )
                if found and found[0]["r"]["state"] in wanted:
                    return dict(found[0]["r"])
                await asyncio.sleep(0.2)

    async def facts(self) -> list[str]:
        found, _, _ = await self.graph.execute_query(
            "MATCH (f:Fact {dataset_id: $id})-[:OBJECT]->(o) RETURN o.name AS name ORDER BY f.seq",
            id=self.key.dataset_id,
        )
        return [row["name"] for row in found]

    async def dead_letters(self, count: int) -> list[DeadLetter]:
        letters: list[DeadLetter] = []
        async with asyncio.timeout(60):
            async for incoming in self.log.follow("dead.letters", dict.fromkeys(range(12), 0)):
                letters.append(DeadLetter.model_validate_json(incoming.value or b""))
                if len(letters) == count:
                    break
        return letters


@pytest.fixture
async def pipeline(services: Addresses) -> AsyncIterator[Pipeline]:
    prefix = f"p{uuid4().hex[:8]}."
    # Collections hold vectors of one embedder; other tests use another.
    environment = worker_environment(services, STRANDLINE_KAFKA__PREFIX=prefix, STRANDLINE_WEAVIATE__PREFIX="Pipeline")
    await ensure_topics(services.kafka_bootstrap, TOPICS, replication=1, prefix=prefix)
    async with (
        KafkaLog(services.kafka_bootstrap, prefix=prefix) as log,
        driver_of(services) as graph,
        fleet(environment, 1) as workers,
    ):
        yield Pipeline(services.kafka_bootstrap, prefix, log, graph, DatasetKey(f"user-{uuid4().hex[:8]}"))
        for worker in workers:
            worker.check()
            assert worker.deaths == []


async def test_what_nobody_can_read_is_kept_with_its_bytes_and_holds_nothing_up(pipeline: Pipeline) -> None:
    key = pipeline.key.encode()
    newer = {"schema_version": 99, "user_id": pipeline.key.user_id, "run_id": str(uuid4()), "text": "from the future"}
    await pipeline.produce("remember.requests", json.dumps(newer).encode(), key)
    await pipeline.produce("remember.requests", b"\xff\x00 no JSON", key)
    await pipeline.produce("graph.writes", b'{"seq": "many"}', key)
    with pytest.raises(MessageSizeTooLargeError):
        await pipeline.produce("remember.requests", b"x" * 10_000_000, key)
    run = await pipeline.remember("Ada | works_at | Acme")
    await pipeline.state(run, "complete")
    letters = await pipeline.dead_letters(3)
    assert {letter.error_code for letter in letters} == {"undecodable"}
    assert {letter.topic for letter in letters} == {"remember.requests", "graph.writes"}
    assert b"\xff\x00 no JSON" in {letter.record_value for letter in letters}
    assert any("schema 99" in letter.error for letter in letters)
    assert await pipeline.facts() == ["Acme"]


async def test_a_text_that_breaks_the_rules_is_rejected_and_nothing_of_it_is_written(pipeline: Pipeline) -> None:
    blank = await pipeline.remember(" \n ", number=1)
    huge = await pipeline.remember("x" * (2**20 + 1), number=2)
    largest = await pipeline.remember("y" * 2**20, number=3)
    assert "blank" in str((await pipeline.state(blank, "rejected"))["error"])
    assert "1,048,577 bytes" in str((await pipeline.state(huge, "rejected"))["error"])
    row = await pipeline.state(largest, "complete")
    assert row["seq"] == 1, "what is rejected gets no number"


async def test_a_model_that_refuses_fails_its_run_alone_and_one_that_is_away_is_waited_for(pipeline: Pipeline) -> None:
    first = await pipeline.remember("Build | has_status | one\n! outage 2", number=1)
    refused = await pipeline.remember("Build | has_status | never\n! permanent", number=2)
    last = await pipeline.remember("Build | has_status | three\n! retryable", number=3)
    await pipeline.state(last, "complete")
    await pipeline.state(first, "complete")
    failed = await pipeline.state(refused, "failed")
    assert failed["error"]
    stored, _, _ = await pipeline.graph.execute_query(
        "MATCH (a:Artifact {run_id: $run}) RETURN a.seq AS seq", run=refused
    )
    assert stored[0]["seq"] == 2, "the text itself stays"
    assert await pipeline.facts() == ["one", "three"]
    assert [letter.stage for letter in await pipeline.dead_letters(1)] == ["extract"]


async def test_a_used_key_with_another_request_is_rejected_and_the_same_again_is_one(pipeline: Pipeline) -> None:
    run = await pipeline.remember("Ada | works_at | Acme", number=7)
    again = await pipeline.remember("Ada | works_at | Acme", number=7)
    other = await pipeline.remember("Ada | works_at | Beta", number=7)
    assert run == again
    assert (await pipeline.state(other, "rejected"))["error_code"] == "key_conflict"
    await pipeline.state(run, "complete")
    assert await pipeline.facts() == ["Acme"]
