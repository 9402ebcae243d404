"""What every `Embedder` does, wherever the vectors come from."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio
from pydantic import SecretStr

from agents.models.base import Embedder
from agents.models.local.minilm import MiniLMEmbedder
from agents.models.openai_embedder import OpenAIEmbedder
from agents.models.scripted import HashedEmbedder
from tests.simulators.model_vendors import KEY, ModelVendors

TEXTS = [
    "Tom Brown works at Initech.",
    "Tom Brown is working at Initech",
    "The cat sat on a warm windowsill.",
    "42",
    "你好",
]

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(
    loop_scope="module", scope="module", params=["openai", "openai-own-server", "openai-shortened", "local", "scripted"]
)
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    async with ModelVendors() as vendors:
        url, key = vendors.openai_url, SecretStr(KEY)
        embedders: dict[str, Embedder] = {
            "openai": OpenAIEmbedder(key, base_url=url, plain_numbers=False),
            "openai-own-server": OpenAIEmbedder(key, base_url=url, model="bge-small", dimension=1536),
            "openai-shortened": OpenAIEmbedder(key, base_url=url, model="text-embedding-3-large", dimension=256),
            "local": MiniLMEmbedder(),
            "scripted": HashedEmbedder(),
        }
        yield embedders[request.param]
        for each in embedders.values():
            await each.close()


async def test_a_vector_is_float32_of_unit_length(embedder: Embedder) -> None:
    vectors = await embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


async def test_no_texts_give_no_rows(embedder: Embedder) -> None:
    vectors = await embedder.embed([])
    assert vectors.shape == (0, embedder.dimension)
    assert vectors.dtype == np.float32


async def test_vectors_come_in_the_order_of_the_texts(embedder: Embedder) -> None:
    forward, backward = await embedder.embed(TEXTS), await embedder.embed(TEXTS[::-1])
    np.testing.assert_allclose(forward, backward[::-1], atol=1e-5)


async def test_a_vector_does_not_depend_on_its_neighbours(embedder: Embedder) -> None:
    together = await embedder.embed(TEXTS)
    alone = np.concatenate([await embedder.embed([text]) for text in TEXTS])
    # An int8 model scales its numbers by batch: near is as near as it gets.
    assert np.min(np.sum(together * alone, axis=1)) > 0.98


async def test_the_same_text_gives_the_same_vector(embedder: Embedder) -> None:
    np.testing.assert_array_equal(await embedder.embed(TEXTS), await embedder.embed(TEXTS))


@pytest.mark.parametrize(
    "text", ["", "   ", "\x00", "a" * 20_000, "😀" * 3_000], ids=["empty", "blank", "control", "long", "emoji"]
)
async def test_odd_text_has_a_vector_too(embedder: Embedder, text: str) -> None:
    vectors = await embedder.embed([text, "Tom"])
    assert np.all(np.isfinite(vectors))
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


async def test_texts_that_say_the_same_in_like_words_lie_nearer_than_others(embedder: Embedder) -> None:
    same, alike, other = await embedder.embed(TEXTS[:3])
    assert same @ alike > same @ other + 0.2


async def test_many_batches_at_once_do_not_mix(embedder: Embedder) -> None:
    expected = await embedder.embed(TEXTS)
    for vectors in await asyncio.gather(*(embedder.embed(TEXTS) for _ in range(8))):
        np.testing.assert_allclose(vectors, expected, atol=1e-5)


async def test_the_model_is_named(embedder: Embedder) -> None:
    assert "/" in embedder.model_id
