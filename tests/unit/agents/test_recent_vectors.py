"""Vectors come in slices, and what is computed is not computed again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from agents.committers import RecentVectors
from agents.group_commit import GroupCommitter
from agents.models.base import Vectors
from agents.models.scripted import HashedEmbedder


class Counting(HashedEmbedder):
    """Counts texts; may be told to stop after some."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[int] = []
        self.blocked = asyncio.Event()
        self.blocked.set()

    async def embed(self, texts: Sequence[str]) -> Vectors:
        await self.blocked.wait()
        self.requests.append(len(texts))
        return await super().embed(texts)


def vectors_of(embedder: Counting) -> RecentVectors:
    vectors = RecentVectors(embedder)
    vectors.submit = GroupCommitter(vectors.write, cap=8).submit
    return vectors


async def test_the_answer_is_as_the_embedders_in_the_order_asked() -> None:
    vectors = vectors_of(Counting())
    texts = [f"text {n % 30}" for n in range(50)]
    assert np.array_equal(await vectors.of(texts), await HashedEmbedder().embed(texts))
    assert (await vectors.of([])).shape == (0, 384)


async def test_a_long_document_is_asked_in_slices_so_that_others_come_between() -> None:
    embedder = Counting()
    vectors = vectors_of(embedder)
    await asyncio.gather(vectors.of([f"piece {n}" for n in range(100)]), vectors.of(["a short text"]))
    assert max(embedder.requests) <= RecentVectors.SLICE_TEXTS + 1
    assert embedder.requests[0] == RecentVectors.SLICE_TEXTS + 1, "the short text did not wait for the document"


async def test_a_turn_that_runs_out_of_time_goes_on_where_it_was() -> None:
    embedder = Counting()
    vectors = vectors_of(embedder)
    pieces = [f"piece {n}" for n in range(48)]
    await vectors.of(pieces[:32])
    embedder.blocked.clear()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await vectors.of(pieces)
    embedder.blocked.set()
    await vectors.of(pieces)
    assert sum(embedder.requests) <= 48 + RecentVectors.SLICE_TEXTS
    before = len(embedder.requests)
    await vectors.of(pieces)
    assert len(embedder.requests) == before, "all are kept"
