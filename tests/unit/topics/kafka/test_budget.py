from __future__ import annotations

import asyncio
import random

from hypothesis import given
from hypothesis import strategies as st

from topics.kafka.budget import ByteBudget


async def settle() -> None:
    """Lets every task run until it waits."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_what_fits_is_taken_at_once_and_the_rest_waits() -> None:
    budget = ByteBudget(10)
    assert await budget.take(6) == 6
    waiting = asyncio.create_task(budget.take(5))
    await settle()
    assert not waiting.done()
    budget.give_back(6)
    assert await waiting == 5


async def test_a_small_one_does_not_overtake_a_large_one() -> None:
    budget = ByteBudget(10)
    await budget.take(6)
    large, small = asyncio.create_task(budget.take(8)), asyncio.create_task(budget.take(1))
    await settle()
    assert not small.done()
    budget.give_back(6)
    assert await large == 8
    assert await small == 1


async def test_more_than_the_total_waits_until_all_is_back() -> None:
    budget = ByteBudget(10)
    await budget.take(1)
    huge = asyncio.create_task(budget.take(1000))
    await settle()
    assert not huge.done()
    budget.give_back(1)
    assert await huge == 10


async def test_when_the_first_in_line_gives_up_the_next_is_looked_at() -> None:
    budget = ByteBudget(10)
    await budget.take(6)
    large, small = asyncio.create_task(budget.take(8)), asyncio.create_task(budget.take(1))
    await settle()
    large.cancel()
    assert await small == 1


@given(st.integers(0, 2**32), st.lists(st.integers(1, 14), min_size=1, max_size=30))
def test_the_total_is_never_exceeded_and_all_comes_back_whoever_is_cancelled(seed: int, sizes: list[int]) -> None:
    async def run() -> None:
        rng, budget, out = random.Random(seed), ByteBudget(10), 0

        async def use(size: int) -> None:
            nonlocal out
            taken = await budget.take(size)
            out += taken
            assert out <= 10
            try:
                for _ in range(rng.randrange(4)):
                    await asyncio.sleep(0)
            finally:
                out -= taken
                budget.give_back(taken)

        users = [asyncio.create_task(use(size)) for size in sizes]
        for user in users:
            for _ in range(rng.randrange(3)):
                await asyncio.sleep(0)
            if rng.random() < 0.3:
                user.cancel()
        async with asyncio.timeout(5):
            ended = await asyncio.gather(*users, return_exceptions=True)
        assert all(one is None or isinstance(one, asyncio.CancelledError) for one in ended)
        assert await budget.take(10) == 10  # all came back

    asyncio.run(run())
