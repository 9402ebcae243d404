"""Workers on the real broker: nothing lost, doubled or out of order, whatever ends, fails or is frozen; and they end when told."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.kafka_host.process import EXIT_CLEAN, EXIT_CRASHED, EXIT_NOT_STARTED, EXIT_OUT_OF_GRACE
from strandline.stack import Addresses, NativeStack
from tests.integration.agents.worker_world import World, until, world
from topics.kafka.admin import administering
from topics.keys import DatasetKey, partition_of
from topics.registry import STAGE_PARTITIONS

pytestmark = [pytest.mark.connected, pytest.mark.timeout(180)]


@pytest.fixture
async def here(services: Addresses, tmp_path: Path) -> AsyncIterator[World]:
    async with world(services.kafka_bootstrap, tmp_path) as made:
        yield made


def datasets_on(partition: int) -> list[str]:
    """Names whose records lie on that partition."""
    names = (f"d{number}" for number in range(1000))
    return [name for name in names if partition_of(DatasetKey("u", name).encode(), STAGE_PARTITIONS) == partition]


async def feed_all(here: World, datasets: int, numbers: range) -> None:
    for number in numbers:
        await asyncio.gather(*(here.feed_one(f"d{which}", number) for which in range(datasets)))


async def test_records_flow_through_join_stop_and_kill_once_and_in_order(here: World) -> None:
    first = await here.start().ready()
    feeding = asyncio.create_task(feed_all(here, 24, range(40)))
    second = await here.start().ready()
    first.send(signal.SIGTERM)
    third = here.start()
    assert await first.ended(30) == EXIT_CLEAN
    await third.ready()
    second.process.kill()
    await feeding
    await here.all_committed()
    here.assert_each_once_in_order()
    third.send(signal.SIGTERM)
    assert await third.ended(30) == EXIT_CLEAN
    sent = {dict(incoming.headers)["ce_id"] for incoming in await here.everything_on("remember.texts")}
    assert len(sent) == 24 * 40


async def test_a_kill_with_many_keys_in_work_loses_nothing(here: World) -> None:
    await feed_all(here, 16, range(10))
    first = here.start(work_s=0.3)

    async def works() -> bool:
        return len(here.store.effects()) > 3

    await until(works, "effects")
    first.process.kill()
    here.start()
    await here.all_committed()
    here.assert_each_once_in_order()


async def test_a_kill_while_an_early_record_is_in_work_does_not_lose_it(here: World) -> None:
    """Faust commits past open records: only acknowledging an unbroken prefix keeps the slow one."""
    slow, *others = datasets_on(0)[:5]
    (elsewhere,) = datasets_on(1)[:1]
    first = here.start(slow_s=60.0)
    await here.feed_one(slow, 0, "slow")
    for dataset in others:
        await here.feed(dataset, range(3))

    async def others_are_done() -> bool:
        return len(here.store.effects()) == len(others)

    await until(others_are_done, "the others' effects")
    await here.feed_one(elsewhere, 0)

    async def a_commit_has_passed() -> bool:
        return elsewhere in here.store.effects() and await here.behind() <= 1 + 3 * len(others)

    await until(a_commit_has_passed, "a commit")
    first.process.kill()
    here.start()
    await here.all_committed()
    here.assert_each_once_in_order()


async def test_poison_goes_to_dead_letters_with_its_bytes_and_others_go_on(here: World) -> None:
    def how(number: int) -> str:
        return {2: "poison", 4: "permanent", 6: "bug", 8: "big"}.get(number, "fine")

    await here.feed("a", range(12), how)
    await here.feed("b", range(20, 32))
    here.start()
    await here.all_committed()
    letters = sorted(await here.dead_letters(), key=lambda letter: letter.offset)
    assert [letter.error_code for letter in letters] == ["refused", "refused", "bug", "refused"]
    assert all(letter.record_value and b'"idempotency_key"' in letter.record_value for letter in letters)
    assert all(letter.record_key == b'["u","a"]' and dict(letter.record_headers)["ce_id"] for letter in letters)
    assert {letter.attempts for letter in letters if letter.error_code == "bug"} == {3}
    # The effect of 8 is written before the log refuses what follows from it.
    here.assert_each_once_in_order(without={2, 4, 6})
    events = await here.run_events()
    failed = {event.run_id for event in events if event.state == "failed"}
    assert failed == {letter.run_id for letter in letters}
    assert len({event.run_id for event in events if event.state == "queryable"}) == 20


async def test_a_record_that_cannot_be_decoded_goes_to_dead_letters(here: World) -> None:
    from aiokafka import AIOKafkaProducer

    topic = f"{here.options.prefix}remember.requests"
    async with AIOKafkaProducer(bootstrap_servers=here.options.bootstrap) as producer:
        await producer.send_and_wait(topic, b"\xff no JSON", key=b'["u","a"]', headers=[("x", b"1")])
        await producer.send_and_wait(topic, b"{}", key=None)
        await producer.send_and_wait(topic, None, key=b"no key of ours")
    await here.feed("a", range(3))
    here.start()
    await here.all_committed()
    letters = await here.dead_letters()
    assert [letter.error_code for letter in letters] == ["undecodable"] * 3
    assert {letter.dataset for letter in letters} == {"a", "unknown"}
    assert b"\xff no JSON" in {letter.record_value for letter in letters}
    here.assert_each_once_in_order()


async def test_a_flaky_record_is_retried_in_place_and_keeps_its_order(here: World) -> None:
    await here.feed("a", range(20), lambda number: "flaky" if number % 5 == 0 else "fine")
    worker = here.start()
    await here.all_committed()
    here.assert_each_once_in_order()
    assert await here.dead_letters() == []
    assert 'strandline_stage_retries_total{reason="retryable",stage="toy"}' in await worker.get("/metrics")


async def test_a_stop_waits_for_the_record_in_work_and_a_slow_stage_says_that_it_started(here: World) -> None:
    worker = await here.start(slow_s=9.0).ready()
    await here.feed_one("a", 0, "slow")

    async def started() -> bool:
        return any(event.stage and event.stage.state == "started" for event in await here.run_events())

    await until(started, "started")
    worker.send(signal.SIGTERM)
    assert await worker.ended(30) == EXIT_CLEAN
    here.assert_each_once_in_order()
    assert await here.behind() == 0


async def test_a_rebalance_with_slow_turns_of_many_records_does_not_stand_still(here: World) -> None:
    first = await here.start(slow_s=1.0).ready()
    for number in range(6):
        await asyncio.gather(*(here.feed_one(f"d{which}", number, "slow") for which in range(30)))
    second = here.start()
    await second.ready()
    await here.all_committed(90)
    here.assert_each_once_in_order()
    first.send(signal.SIGTERM)
    assert await first.ended(20) == EXIT_CLEAN


async def test_a_missing_topic_refuses_the_start(here: World) -> None:
    async with administering(here.options.bootstrap) as client:
        await client.delete_topics([f"{here.options.prefix}remember.texts"])
    worker = here.start()
    assert await worker.ended(30) == EXIT_NOT_STARTED
    assert "remember.texts" in worker.log()


async def test_a_worker_that_finds_no_broker_ends_with_a_clear_error(here: World) -> None:
    worker = here.start(bootstrap="127.0.0.1:1")
    assert await worker.ended(40) == EXIT_NOT_STARTED
    assert "127.0.0.1:1" in worker.log()


async def test_a_frozen_worker_that_wakes_after_its_session_does_not_write(here: World) -> None:
    """Frozen inside a handler: awake, it believes for a while that it still owns the partition. Only the store's epoch stops it."""
    zombie = await here.start(work_s=2.0).ready()
    await here.feed("a", range(4))

    async def works() -> bool:
        return 'strandline_stage_pending_records{stage="toy"} 4.0' in await zombie.get("/metrics")

    await until(works, "records in work")
    zombie.send(signal.SIGSTOP)
    owner = here.start()
    await here.all_committed()
    here.store._db.execute("delete from head")  # takes the position's guard away: what is left is the epoch
    zombie.send(signal.SIGCONT)

    def writers() -> set[int]:
        return {pid for (pid,) in here.store._db.execute("select pid from effect")}

    async def has_shown_itself() -> bool:
        return "turn.fenced" in zombie.log() or zombie.process.pid in writers()

    await until(has_shown_itself, "the zombie tried to write")
    assert writers() == {owner.process.pid}
    await zombie.ready()
    here.assert_each_once_in_order()


async def test_an_owner_that_is_fenced_by_mistake_joins_anew_and_goes_on(here: World) -> None:
    worker = await here.start().ready()
    await here.feed("a", range(3))
    await here.all_committed()
    here.store._db.execute("update owner set epoch = epoch + 1")  # a claim that came too late
    await here.feed("a", range(3, 6))
    await here.all_committed()
    here.assert_each_once_in_order()
    assert "worker.rejoining" in worker.log()


async def test_readiness_names_what_is_missing(here: World) -> None:
    async with administering(here.options.bootstrap) as client:
        await client.delete_topics([f"{here.options.prefix}remember.requests"])
    worker = here.start(off=("topics",))

    async def answers() -> bool:
        return "partitions" in await worker.said("/ready")

    await until(answers, "the page")
    assert await worker.said("/live") == '200 {"live": true}'
    worker.send(signal.SIGTERM)
    assert await worker.ended(25) in (EXIT_CLEAN, EXIT_OUT_OF_GRACE)


async def test_a_ready_worker_says_so(here: World) -> None:
    worker = await here.start().ready()
    assert await worker.get("/ready") == '{"ready": true, "missing": [], "holes": {}, "full": []}'

    async def says_so() -> bool:
        return f"port={worker.port}" in worker.log().partition("worker.ready")[2]

    await until(says_so, "the line in the log")


async def test_a_stop_while_the_broker_is_away_ends_within_the_grace_time(
    own_stack: NativeStack, tmp_path: Path
) -> None:
    bootstrap = own_stack.up(["kafka"]).kafka_bootstrap
    async with world(bootstrap, tmp_path) as here:
        worker = await here.start(grace_s=8.0).ready()
        await here.feed("a", range(3))
        await here.all_committed()
        own_stack.kill("kafka")
        begun = time.monotonic()
        worker.send(signal.SIGTERM)
        assert await worker.ended(20) in (EXIT_CLEAN, EXIT_OUT_OF_GRACE)
        assert time.monotonic() - begun < 9
        own_stack.start("kafka")
        await here.feed("a", range(3, 6))
        here.start()
        await here.all_committed()
        here.assert_each_once_in_order()


async def test_a_broker_that_is_killed_and_comes_back_costs_nothing(own_stack: NativeStack, tmp_path: Path) -> None:
    bootstrap = own_stack.up(["kafka"]).kafka_bootstrap
    async with world(bootstrap, tmp_path) as here:
        worker = await here.start(slow_s=0.2).ready()
        for number in range(5):
            await asyncio.gather(*(here.feed_one(f"d{which}", number, "slow") for which in range(20)))
        own_stack.kill("kafka")

        async def is_missed() -> bool:
            return "kafka" in await worker.said("/ready")

        await until(is_missed, "the worker has met the outage")
        own_stack.start("kafka")
        await here.feed("later", range(3))
        await here.all_committed(90)
        here.assert_each_once_in_order()
        assert await here.dead_letters() == []
        assert worker.process.poll() is None


async def test_a_worker_that_stands_still_for_no_known_reason_ends_itself(here: World) -> None:
    worker = await here.start(slow_s=25.0, stall_exit_s=4.0, grace_s=4.0).ready()
    await here.feed_one("a", 0, "slow")
    assert await worker.ended(30) in (EXIT_CRASHED, EXIT_OUT_OF_GRACE)
    assert "Stalled" in worker.log()
