"""The watchdog: alarms late, ends the process only when nothing is known to be away and nothing is missing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from faust.types import TP
from structlog.testing import capture_logs

from agents.breaker import Breakers
from agents.contract import Done, Stage, Turn
from agents.kafka_host.app import KafkaHost
from agents.kafka_host.options import WorkerOptions
from agents.kafka_host.watchdog import Stalled, Watchdog
from agents.metrics import Metrics
from tests.simulators.memory_log import MemoryLog
from topics.clock import SystemClock
from topics.errors import Outage
from topics.records import RememberRequest


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


class EndingLog(MemoryLog):
    def __init__(self) -> None:
        super().__init__()
        self.end = 0
        self.away = False

    async def ends(self, topic: str) -> Mapping[int, int]:
        if self.away:
            raise Outage("kafka", "away")
        return {0: self.end}


async def no_epochs(partitions: Sequence[str]) -> Mapping[str, int]:
    return {}


async def nothing(turn: Turn[RememberRequest], deps: None) -> list[Done]:
    return []


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[KafkaHost]:
    made = KafkaHost(
        [Stage("toy", reads="remember.requests", sends=(), run=nothing)],
        None,
        log=EndingLog(),
        clock=SystemClock(),
        raise_epochs=no_epochs,
        breakers=Breakers(),
        metrics=Metrics(),
        options=WorkerOptions("127.0.0.1:9092", stall_alarm=timedelta(minutes=2), stall_exit=timedelta(minutes=10)),
        datadir=str(tmp_path),
    )
    yield made
    if made.app._consumer is not None:
        made.app.consumer._thread.thread_loop.close()  # type: ignore[attr-defined]


async def test_a_young_record_is_no_alarm_and_an_old_one_is_with_a_fresh_one_a_minute(host: KafkaHost) -> None:
    time = Time()
    dog = Watchdog(host, EndingLog(), time)
    with capture_logs() as logs:
        dog.judge(100)
        assert logs == []
        for _ in range(60):
            time.now += 2
            dog.judge(150)
        assert [entry["event"] for entry in logs] == ["worker.stalled"] * 2


async def test_a_stall_for_no_known_reason_ends_the_process(host: KafkaHost) -> None:
    with pytest.raises(Stalled):
        Watchdog(host, EndingLog(), Time()).judge(601)


async def test_an_outage_or_a_hole_excuses(host: KafkaHost) -> None:
    dog = Watchdog(host, EndingLog(), Time())
    host.breakers.trip(Outage("neo4j", "away"))
    dog.judge(601)
    host.breakers.of("neo4j").reset()
    host.holes.add("toy", b"key")
    dog.judge(601)
    host.holes.discard("toy", b"key")
    with pytest.raises(Stalled):
        dog.judge(601)


async def test_records_that_nobody_delivers_age_too(host: KafkaHost) -> None:
    time, log = Time(), EndingLog()
    dog = Watchdog(host, log, time)
    tp = TP("remember.requests", 0)
    host.assigned({tp})
    host.stages["remember.requests"].next_offsets[tp] = 5
    log.end = 5
    await dog._ask()
    assert dog._oldest(time.now) == 0
    log.end = 6
    await dog._ask()
    time.now += 700
    await dog._ask()
    assert dog._oldest(time.now) == 700
    host.stages["remember.requests"].next_offsets[tp] = 6
    await dog._ask()
    assert dog._oldest(time.now) == 0
    await host.epochs.close()


async def test_a_log_that_does_not_answer_is_known_to_be_away_until_it_does(host: KafkaHost) -> None:
    log = EndingLog()
    dog = Watchdog(host, log, Time())
    log.away = True
    await dog._ask()
    assert host.breakers.away() == ("kafka",)
    log.away = False
    await dog._ask()
    assert host.breakers.away() == ()


async def test_what_breaks_the_host_ends_the_watch(host: KafkaHost) -> None:
    host._broke(ValueError("a lane has a bug"))
    with pytest.raises(ValueError, match="a lane has a bug"):
        await asyncio.wait_for(Watchdog(host, EndingLog(), Time()).watch(), 5)
