"""What only Weaviate has: collections to be made, an address that may be wrong, a service that may be away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import numpy as np
import pytest

from graph.protocols import COLLECTIONS, IndexRow
from graph.weaviate.connection import Server
from graph.weaviate.index import WeaviateIndex
from graph.weaviate.schema import OtherEmbedder, collection_name
from strandline.stack import Addresses
from tests.contract.backends import DIMENSION, weaviate_index
from tests.contract.graph_rows import fresh_key
from tests.services import weaviate_client
from topics.errors import Outage

pytestmark = pytest.mark.connected


@pytest.fixture
async def prefix(services: Addresses) -> AsyncIterator[str]:
    """Of collections that are deleted afterwards."""
    prefix = f"T{uuid4().hex[:10]}"
    yield prefix
    async with weaviate_client(services) as client:
        for collection in COLLECTIONS:
            await client.collections.delete(collection_name(prefix, collection))


async def test_starts_at_once_make_the_collections_once(services: Addresses, prefix: str) -> None:
    await asyncio.gather(*(weaviate_index(services, prefix=prefix).ensure() for _ in range(4)))


@pytest.mark.parametrize(("model_id", "dimension"), [("test/other", DIMENSION), ("test/eight", DIMENSION + 1)])
async def test_vectors_of_another_embedder_are_refused(
    services: Addresses, prefix: str, model_id: str, dimension: int
) -> None:
    await weaviate_index(services, prefix=prefix).ensure()
    with pytest.raises(OtherEmbedder, match=r"test/eight.*STRANDLINE_WEAVIATE__PREFIX"):
        await weaviate_index(services, prefix=prefix, model_id=model_id, dimension=dimension).ensure()


async def test_a_foreign_collection_of_our_name_is_refused(services: Addresses, prefix: str) -> None:
    async with weaviate_client(services) as client:
        await client.collections.create(collection_name(prefix, "Fact"), description="somebody else's")
    with pytest.raises(OtherEmbedder, match="not one of ours"):
        await weaviate_index(services, prefix=prefix).ensure()


async def test_collections_that_are_gone_are_an_outage_not_a_fault_of_the_row(services: Addresses) -> None:
    index = weaviate_index(services, prefix="Nowhere")
    row = IndexRow(fresh_key(), "Fact", str(uuid4()), "heron", np.eye(1, DIMENSION, dtype=np.float32)[0])
    with pytest.raises(Outage):
        await index.put([row])
    with pytest.raises(Outage):
        await index.by_words(row.key, "Fact", "heron", 1)
    await index.close()


async def test_a_wrong_key_is_an_outage(services: Addresses) -> None:
    server = Server(
        services.weaviate_http_host, services.weaviate_http_port, services.weaviate_grpc_port, api_key="wrong"
    )
    index = WeaviateIndex(server, model_id="test/eight", dimension=DIMENSION, prefix="Contract")
    with pytest.raises(Outage):
        await index.by_words(fresh_key(), "Fact", "heron", 1)
    with pytest.raises(Outage):
        await index.ensure()
    await index.close()
