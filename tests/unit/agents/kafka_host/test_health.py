"""The worker's page: holes and full partitions are named, and do not make the worker unready."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import aiohttp
import pytest
from faust.types import TP

from agents.breaker import Breakers
from agents.contract import Done, Stage, Turn
from agents.kafka_host.app import KafkaHost, KafkaRecord
from agents.kafka_host.health import health_page
from agents.kafka_host.options import WorkerOptions
from agents.metrics import Metrics
from tests.simulators.memory_log import MemoryLog
from tests.simulators.partition_host import PartitionHost, SimulatedRecord
from topics.clock import SystemClock
from topics.records import RememberRequest


async def no_epochs(partitions: Sequence[str]) -> Mapping[str, int]:
    return {}


async def nothing(turn: Turn[RememberRequest], deps: None) -> list[Done]:
    return []


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[KafkaHost]:
    made = KafkaHost(
        [Stage("toy", reads="remember.requests", sends=(), run=nothing, slots=1)],
        None,
        log=MemoryLog(),
        clock=SystemClock(),
        raise_epochs=no_epochs,
        breakers=Breakers(),
        metrics=Metrics(),
        options=WorkerOptions("127.0.0.1:9092", health_port=0),
        datadir=str(tmp_path),
    )
    yield made
    await made.epochs.close()
    if made.app._consumer is not None:
        made.app.consumer._thread.thread_loop.close()  # type: ignore[attr-defined]


async def test_a_hole_in_a_full_partition_is_named_by_a_worker_that_stays_ready(host: KafkaHost) -> None:
    host.assigned({TP("remember.requests", 0)})
    stage = host.stages["remember.requests"]
    await stage._slots.acquire()  # so the record waits
    lanes = stage.open_lanes(1, lambda partition: None, host._broke)
    model = PartitionHost([[b"key"]])
    record: KafkaRecord = SimulatedRecord(model, 0, b"key", 0, 1)  # type: ignore[assignment]
    async with health_page(host, Metrics()) as port, aiohttp.ClientSession() as session:
        url = f"http://127.0.0.1:{port}/ready"
        async with session.get(url) as answer:
            assert json.loads(await answer.text()) == {"ready": True, "missing": [], "holes": {}, "full": []}
        host.holes.add("toy", b"key")
        lanes.take(record)
        async with session.get(url) as answer:
            assert answer.status == 200
            assert json.loads(await answer.text()) == {
                "ready": True,
                "missing": [],
                "holes": {"toy": 1},
                "full": ["toy"],
            }
    await lanes.close()
