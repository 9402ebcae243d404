"""Kill anything, at any time: afterwards every accepted record is there exactly once, in order, in graph and index.

`make chaos` runs the whole; the shorter form is part of `make test`. STRANDLINE_CHAOS_SEED repeats a run's choices (not its timing).
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from neo4j import AsyncDriver

from strandline.stack import Addresses, NativeStack
from tests.chaos.fleet import SESSION_TIMEOUT_S, Worker, fleet, worker_environment
from tests.chaos.flow import Flow
from tests.chaos.verifier import applied, driver_of, violations
from tests.services import weaviate_client
from topics.kafka.admin import ensure_topics
from topics.kafka.groups import rewind_group
from topics.kafka.log import KafkaLog
from topics.registry import TOPICS

SERVICES = ("kafka", "neo4j", "weaviate")

START_PATIENCE_S = 180.0
"""Workers import a good deal before they work, on a machine that may be busy."""


@dataclass
class Killer:
    """Kills and revives, in an order that its seed decides."""

    stack: NativeStack
    workers: list[Worker]
    choices: random.Random
    kills: Counter[str] = field(default_factory=Counter)

    async def once(self) -> None:
        """Workers are most of the kills, as in life; a service stays away for a moment."""
        target = self.choices.choice(["worker", "worker", *SERVICES])
        self.kills[target] += 1
        if target == "worker":
            worker = self.choices.choice(self.workers)
            await worker.kill()
            await asyncio.sleep(self.choices.uniform(0.0, 2.0))
            await worker.start()
            return
        await asyncio.to_thread(self.stack.kill, target)
        await asyncio.sleep(self.choices.uniform(0.0, 3.0))
        await asyncio.to_thread(self.stack.start, target)


async def wait_applied(driver: AsyncDriver, flow: Flow, wanted: int, patience: float) -> int:
    """Until so many are written; raises with the number reached when nothing moves for `patience` seconds."""
    loop = asyncio.get_running_loop()
    reached, moved_at = -1, loop.time()
    while True:
        try:
            now = await applied(driver, flow)
        except Exception:  # noqa: BLE001  Neo4j may be the one that was killed
            now = reached
        if now > reached:
            reached, moved_at = now, loop.time()
        if reached >= wanted:
            return reached
        if loop.time() - moved_at > patience:
            raise AssertionError(f"nothing moved for {patience:.0f} s: {reached} of {wanted} written")
        await asyncio.sleep(0.2)


async def working(driver: AsyncDriver, log: KafkaLog) -> None:
    """Until the workers work: what flows afterwards meets a running system."""
    warm_up = Flow("warm-up", 16, 16, 100.0)
    await warm_up.run(log, random.Random(0))
    await wait_applied(driver, warm_up, warm_up.total, START_PATIENCE_S)


async def settled(driver: AsyncDriver, addresses: Addresses, flow: Flow, patience: float) -> list[str]:
    """What is still wrong once graph, index and run log had time to catch up."""
    loop = asyncio.get_running_loop()
    until = loop.time() + patience
    async with weaviate_client(addresses) as index:
        while True:
            wrong = await violations(driver, index, flow)
            if not wrong or loop.time() > until:
                return wrong
            await asyncio.sleep(1.0)


async def _run(stack: NativeStack, *, count: int, datasets: int, kills: int, per_second: float, seed: int) -> None:
    print(f"\nchaos: seed {seed}, {count} records, {datasets} datasets, {kills} kills")
    choices = random.Random(seed)
    addresses = await asyncio.to_thread(stack.up)
    await ensure_topics(addresses.kafka_bootstrap, TOPICS, replication=1)
    flow = Flow("chaos", count, datasets, per_second)
    environment = worker_environment(addresses)
    async with (
        driver_of(addresses) as driver,
        KafkaLog(addresses.kafka_bootstrap) as log,
        fleet(environment, 2) as workers,
    ):
        killer = Killer(stack, workers, choices)
        await working(driver, log)
        sending = asyncio.create_task(flow.run(log, random.Random(seed + 1)))
        for number in range(kills):
            # Each kill hits a flow: the system has moved on since the last one, or is still recovering from it.
            await asyncio.sleep(choices.uniform(0.5, 6.0))
            for worker in workers:
                worker.check()
            await killer.once()
            print(f"chaos: kill {number + 1} of {kills}, {dict(killer.kills)}, accepted {flow.total}", flush=True)
        await sending
        await wait_applied(driver, flow, count, 120.0)
        wrong = await settled(driver, addresses, flow, 90.0)
        for worker in workers:
            worker.check()
        deaths = [death for worker in workers for death in worker.deaths]
    print(
        f"chaos: {flow.total} accepted, {flow.repeats} sent again, kills {dict(killer.kills)}, violations {len(wrong)}"
    )
    assert wrong == []
    assert deaths == [], "a worker ended although nobody killed it"


def _seed() -> int:
    return int(os.environ.get("STRANDLINE_CHAOS_SEED", "") or random.SystemRandom().randrange(2**32))


@pytest.mark.chaos
@pytest.mark.timeout(1800)
async def test_twenty_kills_among_two_thousand_records_lose_double_and_disorder_nothing(own_stack: NativeStack) -> None:
    await _run(own_stack, count=2000, datasets=40, kills=20, per_second=6, seed=_seed())


@pytest.mark.connected
@pytest.mark.timeout(600)
async def test_some_kills_lose_double_and_disorder_nothing(own_stack: NativeStack) -> None:
    await _run(own_stack, count=400, datasets=16, kills=5, per_second=6, seed=_seed())


async def _snapshot(driver: AsyncDriver) -> Mapping[str, list[str]]:
    """Every node and relationship of the memory, as text; heads' epochs and run times apart, which say who worked and when."""
    nodes, _, _ = await driver.execute_query(
        "MATCH (n) WHERE n:Artifact OR n:Entity OR n:Fact OR n:Write "
        "RETURN labels(n) AS labels, n{.*} AS all ORDER BY n.id"
    )
    ends, _, _ = await driver.execute_query(
        "MATCH (a)-[r:SUBJECT|OBJECT|STATES|MENTIONS]->(b) RETURN a.id AS a, type(r) AS r, b.id AS b ORDER BY a, r, b"
    )
    return {"nodes": [repr(row.data()) for row in nodes], "ends": [repr(row.data()) for row in ends]}


async def _event_ids(log: KafkaLog, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]) -> list[str]:
    wanted = sum(ends[p] - starts.get(p, 0) for p in ends)
    found: list[str] = []
    if wanted:
        async for incoming in log.follow(topic, {p: starts.get(p, 0) for p in ends}):
            if incoming.offset < ends[incoming.partition]:
                found.append(dict(incoming.headers)["ce_id"].decode())
            if len(found) == wanted:
                break
    return found


async def _grown(log: KafkaLog, topic: str, records: int) -> None:
    """Until the topic has so many records."""
    async with asyncio.timeout(120):
        while sum((await log.ends(topic)).values()) < records:  # noqa: ASYNC110  another process appends
            await asyncio.sleep(0.3)


@pytest.mark.connected
@pytest.mark.timeout(600)
async def test_everything_delivered_again_changes_nothing_and_repeats_the_events(own_stack: NativeStack) -> None:
    addresses = await asyncio.to_thread(own_stack.up)
    await ensure_topics(addresses.kafka_bootstrap, TOPICS, replication=1)
    flow = Flow("again", 200, 8, 200.0)
    environment = worker_environment(addresses)
    async with driver_of(addresses) as driver, KafkaLog(addresses.kafka_bootstrap) as log:
        async with fleet(environment, 1):
            await flow.run(log, random.Random(3))
            await wait_applied(driver, flow, flow.total, 60.0)
            assert await settled(driver, addresses, flow, 60.0) == []
        before = await _snapshot(driver)
        ends = await log.ends("graph.changes")
        first = await _event_ids(log, "graph.changes", {}, ends)
        readable = [spec.name for spec in TOPICS]
        await rewind_group(addresses.kafka_bootstrap, "strandline", topics=readable)
        async with fleet(environment, 1):
            await _grown(log, "graph.changes", 2 * sum(ends.values()))
            assert await settled(driver, addresses, flow, 60.0) == []
        assert await _snapshot(driver) == before
        again = await _event_ids(log, "graph.changes", ends, await log.ends("graph.changes"))
    assert set(again) == set(first), "repeated events have the ids they had"


@pytest.mark.connected
@pytest.mark.timeout(600)
async def test_a_worker_frozen_past_its_session_writes_nothing_when_it_wakes(own_stack: NativeStack) -> None:
    addresses = await asyncio.to_thread(own_stack.up)
    await ensure_topics(addresses.kafka_bootstrap, TOPICS, replication=1)
    flow = Flow("frozen", 600, 16, 40.0)
    environment = worker_environment(addresses)
    async with (
        driver_of(addresses) as driver,
        KafkaLog(addresses.kafka_bootstrap) as log,
        fleet(environment, 2) as workers,
    ):
        await working(driver, log)
        sending = asyncio.create_task(flow.run(log, random.Random(5)))
        await wait_applied(driver, flow, 60, 60.0)
        sleeper = workers[0]
        sleeper.send(signal.SIGSTOP)
        await asyncio.sleep(SESSION_TIMEOUT_S + 4)
        sleeper.send(signal.SIGCONT)
        await sending
        await wait_applied(driver, flow, flow.total, 90.0)
        assert await settled(driver, addresses, flow, 90.0) == []
        for worker in workers:
            worker.check()
        assert [death for worker in workers for death in worker.deaths] == []
