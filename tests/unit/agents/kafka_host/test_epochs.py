"""Epochs: known once the store has raised them, never carried over a rebalance, and no outage hangs anybody but the turns that need them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from agents.breaker import Breakers
from agents.kafka_host.epochs import Epochs, partition_id
from graph.model import Fence
from tests.simulators.virtual_time import run
from topics.errors import Outage


def test_a_partition_is_known_by_log_group_topic_and_number() -> None:
    assert partition_id("log", "group", "remember.requests", 3) == "log/group/remember.requests/3"


def test_an_epoch_is_known_once_the_store_has_raised_it_and_forgotten_when_a_rebalance_begins() -> None:
    async def program() -> None:
        raised: dict[str, int] = {}

        async def raise_epochs(partitions: Sequence[str]) -> Mapping[str, int]:
            await asyncio.sleep(1)
            for each in partitions:
                raised[each] = raised.get(each, 0) + 1
            return {each: raised[each] for each in partitions}

        epochs = Epochs(raise_epochs, Breakers())
        epochs.claim(["b", "a"])
        assert epochs.fence("a") is None
        assert epochs.is_claiming()
        await asyncio.sleep(2)
        assert epochs.fence("a") == Fence("a", 1)
        epochs.forget()
        assert epochs.fence("a") is None
        epochs.claim(["a"])
        await asyncio.sleep(2)
        assert epochs.fence("a") == Fence("a", 2)
        assert epochs.fence("b") is None
        await epochs.close()

    run(program())


def test_an_outage_of_the_store_is_waited_for_in_the_background() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        breakers = Breakers(loop.time)

        async def raise_epochs(partitions: Sequence[str]) -> Mapping[str, int]:
            if loop.time() < 100:
                raise Outage("neo4j", "away")
            if loop.time() < 200:
                await asyncio.sleep(3600)
            return dict.fromkeys(partitions, 4)

        epochs = Epochs(raise_epochs, breakers)
        epochs.claim(["a"])
        await asyncio.sleep(50)
        assert breakers.away() == ("neo4j",)
        await asyncio.sleep(250)
        assert epochs.fence("a") == Fence("a", 4)
        assert breakers.away() == ()
        await epochs.close()

    run(program())


def test_a_claim_that_a_new_assignment_overtakes_has_no_effect_any_more() -> None:
    async def program() -> None:
        async def raise_epochs(partitions: Sequence[str]) -> Mapping[str, int]:
            await asyncio.sleep(5 if "old" in partitions else 1)
            return dict.fromkeys(partitions, 1)

        epochs = Epochs(raise_epochs, Breakers())
        epochs.claim(["old"])
        await asyncio.sleep(1)
        epochs.claim(["new"])
        await asyncio.sleep(20)
        assert (epochs.fence("old"), epochs.fence("new")) == (None, Fence("new", 1))
        await epochs.close()

    run(program())
