"""The collections: made if they are not there, refused if they hold vectors of another embedder."""

from __future__ import annotations

import asyncio
import json

from weaviate import WeaviateAsyncClient
from weaviate.classes.config import Configure, DataType, Property, StopwordsPreset, Tokenization, VectorDistances
from weaviate.exceptions import UnexpectedStatusCodeError

from graph.protocols import COLLECTIONS, Collection
from topics.errors import Permanent

VECTOR = "default"
"""Weaviate's own name for the only vector of a collection."""

RESCORED = 200
"""Nearest by binary code that are compared by their vectors; twice what search asks for."""

_ABOUT = {
    "Fact": "Facts as sentences",
    "Entity": "Names and descriptions of entities",
    "Chunk": "Pieces of texts; owner_id is the artifact",
}


class OtherEmbedder(Permanent):
    """The collections hold vectors of another model."""

    code = "other_embedder"


def collection_name(prefix: str, collection: Collection) -> str:
    return f"{prefix}{collection}"


async def ensure_collections(client: WeaviateAsyncClient, prefix: str, model_id: str, dimension: int) -> None:
    """Makes what is missing; processes that start at once do not disturb each other.

    The embedder is noted in the collection's own description: it is there from the first instant, and cannot be lost without the vectors.
    Raises OtherEmbedder when it is another than `model_id` with `dimension`, else what the client raises.
    """
    # All are awaited before the first error is told: the client must not be closed under a request.
    ended = await asyncio.gather(
        *(_ensure(client, prefix, one, model_id, dimension) for one in COLLECTIONS), return_exceptions=True
    )
    for error in ended:
        if error is not None:
            raise error


async def _ensure(
    client: WeaviateAsyncClient, prefix: str, collection: Collection, model_id: str, dimension: int
) -> None:
    name = collection_name(prefix, collection)
    if not await client.collections.exists(name):
        try:
            await _create(client, name, collection, model_id, dimension)
        except UnexpectedStatusCodeError:
            # Another process made it meanwhile; whether with the same embedder is seen below.
            if not await client.collections.exists(name):
                raise
    _compare(name, (await client.collections.use(name).config.get(simple=True)).description, model_id, dimension)


async def _create(
    client: WeaviateAsyncClient, name: str, collection: Collection, model_id: str, dimension: int
) -> None:
    await client.collections.create(
        name,
        description=json.dumps({"about": _ABOUT[collection], "model_id": model_id, "dimension": dimension}),
        properties=[
            Property(name="words", data_type=DataType.TEXT, tokenization=Tokenization.WORD, index_filterable=False),
            Property(
                name="owner_id",
                data_type=DataType.TEXT,
                tokenization=Tokenization.FIELD,
                index_filterable=False,
                index_searchable=False,
            ),
        ],
        vector_config=Configure.Vectors.self_provided(
            name=VECTOR,
            # Flat with binary codes in memory, rescored by the vectors: at 100,000 rows of 384 numbers a row costs 0.13 ms of CPU (an HNSW
            # graph several), a question 12 ms, and recall at ten was .999. It is linear: from a million rows a dataset on, measure again.
            vector_index_config=Configure.VectorIndex.flat(
                distance_metric=VectorDistances.COSINE,
                quantizer=Configure.VectorIndex.Quantizer.bq(cache=True, rescore_limit=RESCORED),
            ),
        ),
        # "Who is it" must not become an empty question, whatever the language.
        inverted_index_config=Configure.inverted_index(stopwords_preset=StopwordsPreset.NONE),
        multi_tenancy_config=Configure.multi_tenancy(
            enabled=True, auto_tenant_creation=True, auto_tenant_activation=True
        ),
    )


def _compare(name: str, description: str | None, model_id: str, dimension: int) -> None:
    try:
        noted = json.loads(description or "")
        theirs = (str(noted["model_id"]), int(noted["dimension"]))
    except (ValueError, TypeError, KeyError):
        raise OtherEmbedder(
            f"the Weaviate collection {name} is not one of ours: set STRANDLINE_WEAVIATE__PREFIX to a prefix of your own"
        ) from None
    if theirs != (model_id, dimension):
        raise OtherEmbedder(
            f"the Weaviate collection {name} holds vectors of {theirs[0]} ({theirs[1]} numbers), not of {model_id} ({dimension}): "
            "vectors of two models cannot be compared. Configure the former embedder, or another STRANDLINE_WEAVIATE__PREFIX and index anew"
        )
