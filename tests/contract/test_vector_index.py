"""VectorIndex: what every implementation must do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from uuid import uuid4

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.protocols import COLLECTIONS, Collection, IndexRow, VectorIndex
from tests.contract.backends import DIMENSION, WEAVIATE, open_index
from tests.contract.graph_rows import fresh_key
from topics.errors import Permanent
from topics.keys import DatasetKey


@pytest.fixture(params=[WEAVIATE])
async def index(request: pytest.FixtureRequest) -> AsyncIterator[VectorIndex]:
    async with open_index(request.param, request) as index:
        yield index


def axis(number: int, lean: float = 0.0, towards: int = 0) -> NDArray[np.float32]:
    """A unit vector along one axis, leaning towards another."""
    vector = np.zeros(DIMENSION, dtype=np.float32)
    vector[number] = 1.0
    vector[towards] += lean
    return vector / np.linalg.norm(vector)


def row(
    key: DatasetKey,
    words: str,
    vector: NDArray[np.float32] | None = None,
    *,
    collection: Collection = "Fact",
    owner_id: str = "",
    id_: str = "",
) -> IndexRow:
    return IndexRow(key, collection, id_ or str(uuid4()), words, axis(0) if vector is None else vector, owner_id)


async def test_rows_are_found_by_words_best_first(index: VectorIndex) -> None:
    key = fresh_key()
    rows = [row(key, "Ada works at Acme"), row(key, "Bob lives in Berlin"), row(key, "Ada lives in Berlin")]
    await index.put(rows)
    assert set(await index.by_words(key, "Fact", "ada BERLIN", 10)) == {one.id for one in rows}
    assert (await index.by_words(key, "Fact", "ada berlin", 10))[0] == rows[2].id
    assert await index.by_words(key, "Fact", "acme", 10) == [rows[0].id]
    assert len(await index.by_words(key, "Fact", "ada berlin", 2)) == 2
    assert await index.by_words(key, "Fact", "unicorn", 10) == []


async def test_rows_are_found_by_vector_with_their_cosine_best_first(index: VectorIndex) -> None:
    key = fresh_key()
    near, nearer, far = row(key, "", axis(1, 0.5, 2)), row(key, "", axis(1)), row(key, "", axis(3))
    await index.put([near, far, nearer])
    found = await index.by_vector(key, "Fact", axis(1), 2)
    assert [id_ for id_, _ in found] == [nearer.id, near.id]
    assert [score for _, score in found] == pytest.approx([1.0, float(axis(1) @ axis(1, 0.5, 2))], abs=1e-4)


async def test_the_same_id_overwrites(index: VectorIndex) -> None:
    key = fresh_key()
    first = row(key, "the old heron", axis(1))
    await index.put([first])
    await index.put([replace(first, words="the new egret", vector=axis(2))])
    assert await index.by_words(key, "Fact", "heron", 10) == []
    assert await index.by_words(key, "Fact", "egret", 10) == [first.id]
    assert [score for _, score in await index.by_vector(key, "Fact", axis(2), 10)] == pytest.approx([1.0], abs=1e-4)
    assert await index.ids(key, "Fact") == {first.id}


async def test_of_two_rows_of_an_id_in_one_call_the_later_wins(index: VectorIndex) -> None:
    key = fresh_key()
    first = row(key, "heron")
    await index.put([first, replace(first, words="egret")])
    assert await index.by_words(key, "Fact", "egret heron", 10) == [first.id]
    assert await index.by_words(key, "Fact", "heron", 10) == []


async def test_the_pieces_of_a_text_count_once(index: VectorIndex) -> None:
    key, long, short = fresh_key(), str(uuid4()), str(uuid4())
    pieces = [row(key, "okapi " * 3, axis(1), collection="Chunk", owner_id=long) for _ in range(3)]
    await index.put([*pieces, row(key, "an okapi and others", axis(1, 0.5, 2), collection="Chunk", owner_id=short)])
    assert await index.by_words(key, "Chunk", "okapi", 2) == [long, short]
    assert [id_ for id_, _ in await index.by_vector(key, "Chunk", axis(1), 2)] == [long, short]
    assert len(await index.ids(key, "Chunk")) == 4


async def test_collections_and_datasets_know_nothing_of_each_other(index: VectorIndex) -> None:
    mine = fresh_key()
    other = replace(mine, dataset="other")
    rows = [row(key, "heron", collection=collection) for key in (mine, other) for collection in COLLECTIONS]
    await index.put(rows)
    for one in rows:
        assert await index.by_words(one.key, one.collection, "heron", 10) == [one.id]
        assert [id_ for id_, _ in await index.by_vector(one.key, one.collection, axis(0), 10)] == [one.id]
        assert await index.ids(one.key, one.collection) == {one.id}


async def test_an_unknown_dataset_is_empty(index: VectorIndex) -> None:
    key = fresh_key()
    assert list(await index.by_words(key, "Fact", "heron", 10)) == []
    assert list(await index.by_vector(key, "Fact", axis(0), 10)) == []
    assert await index.ids(key, "Fact") == set()


async def test_rows_of_many_datasets_are_written_in_one_call(index: VectorIndex) -> None:
    keys = [fresh_key() for _ in range(12)]
    await index.put([row(key, f"heron {number}") for key in keys for number in range(3)])
    for key in keys:
        assert len(await index.by_words(key, "Fact", "heron", 10)) == 3


async def test_a_large_batch_is_written_whole(index: VectorIndex) -> None:
    key = fresh_key()
    rows = [row(key, f"heron {number}") for number in range(2100)]
    await index.put(rows)
    assert await index.ids(key, "Fact") == {one.id for one in rows}


async def test_writers_at_once_lose_nothing(index: VectorIndex) -> None:
    key = fresh_key()
    await asyncio.gather(*(index.put([row(key, f"heron {number}")]) for number in range(10)))
    assert len(await index.ids(key, "Fact")) == 10


async def test_a_row_that_cannot_be_written_is_refused(index: VectorIndex) -> None:
    key = fresh_key()
    good = row(key, "heron")
    await index.put([good])
    bad = [
        row(key, "heron", np.ones(DIMENSION + 1, dtype=np.float32)),
        row(key, "heron", np.full(DIMENSION, np.nan, dtype=np.float32)),
        row(key, "heron", id_="no id at all"),
    ]
    for one in bad:
        with pytest.raises(Permanent):
            await index.put([row(key, "heron"), one])
    with pytest.raises(Permanent):
        await index.by_vector(key, "Fact", np.ones(DIMENSION + 1, dtype=np.float32), 10)


@pytest.mark.parametrize(
    "words",
    [
        "",
        "  ",
        "?!",
        '{"a"} AND \\" ~2',
        "a\x00b",
        "x" * 100_000,
        "w " * 50_000,
        " ".join(f"w{n}" for n in range(3000)),
    ],
)
async def test_any_question_is_only_words(index: VectorIndex, words: str) -> None:
    key = fresh_key()
    await index.put([row(key, "heron")])
    assert list(await index.by_words(key, "Fact", words, 10)) == []


@pytest.mark.parametrize("words", ["", "a\x00b", "x" * 1024 * 1024, "wörd " * 200_000, "\U0001f600\ufeff\u202e"])
async def test_any_words_can_be_written(index: VectorIndex, words: str) -> None:
    key = fresh_key()
    one = row(key, words, axis(3))
    await index.put([one])
    assert [id_ for id_, _ in await index.by_vector(key, "Fact", axis(3), 10)] == [one.id]


async def test_asking_for_none_gives_none(index: VectorIndex) -> None:
    key = fresh_key()
    await index.put([row(key, "heron")])
    await index.put([])
    assert list(await index.by_words(key, "Fact", "heron", 0)) == []
    assert list(await index.by_vector(key, "Fact", axis(0), 0)) == []
