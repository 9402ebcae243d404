"""VectorIndex on Weaviate. One tenant a dataset; one request for rows of any number of datasets and collections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from weaviate.proto.v1 import base_pb2, base_search_pb2, batch_pb2, search_get_pb2

from graph.model import Id
from graph.protocols import Collection, IndexRow
from graph.weaviate.canary import check_keyword_search
from graph.weaviate.connection import Server, Wire
from graph.weaviate.errors import UnknownTenant, of_message, translated
from graph.weaviate.schema import VECTOR, collection_name, ensure_collections
from topics.errors import Permanent, StrandlineError
from topics.keys import DatasetKey

MAX_WORDS = 64
"""Words of a query that count: as in the graph's full text."""

MAX_ROWS = 1000
"""Of one request; a larger batch is sent in parts."""

_CHUNKS_PER_TEXT = 2
"""How many pieces of one text may stand before the next text: so much more is asked for, since a text counts once."""

_PAGE = 1000


class WeaviateIndex:
    """VectorIndex. Call `ensure` once at start; close it."""

    def __init__(self, server: Server, *, model_id: str, dimension: int, prefix: str = "") -> None:
        """`model_id` and `dimension`: of the embedder whose vectors come in. `prefix` goes before every collection's name."""
        self._server = server
        self._wire = Wire(server)
        self._model_id = model_id
        self._dimension = dimension
        self._prefix = prefix

    async def ensure(self) -> None:
        """Makes the collections that are missing. Raises OtherEmbedder if they hold vectors of another model; Outage."""
        async with self._server.client() as client:
            with translated("make the collections"):
                await ensure_collections(client, self._prefix, self._model_id, self._dimension)

    async def check_words(self) -> None:
        """Raises KeywordSearchBroken if this server misses matches; see the canary. Outage. Costs well under a second."""
        async with self._server.client() as client:
            await check_keyword_search(client)

    async def ready(self) -> None:
        """Returns if a question is answered; raises what a question would."""
        await self.by_words(DatasetKey("", ""), "Fact", "ready", 1)

    async def close(self) -> None:
        await self._wire.close()

    async def put(self, rows: Sequence[IndexRow]) -> None:
        # Within a request the later of two rows of an id need not win.
        last = {(row.key, row.collection, row.id): row for row in rows}
        remaining = iter(last.values())
        while part := list(islice(remaining, MAX_ROWS)):
            await self._put(part)

    async def by_words(self, key: DatasetKey, collection: Collection, words: str, limit: int) -> Sequence[Id]:
        query = " ".join(list(dict.fromkeys(words.split()))[:MAX_WORDS])
        if not query or limit < 1:
            return []
        request = self._question(key, collection, limit)
        request.bm25_search.CopyFrom(base_search_pb2.BM25(query=query, properties=["words"]))
        return [id_ for id_, _ in await self._owners(request, limit)]

    async def by_vector(
        self, key: DatasetKey, collection: Collection, vector: NDArray[np.float32], limit: int
    ) -> Sequence[tuple[Id, float]]:
        if limit < 1:
            return []
        request = self._question(key, collection, limit)
        request.near_vector.CopyFrom(
            base_search_pb2.NearVector(
                vectors=[
                    base_pb2.Vectors(
                        vector_bytes=self._bytes(vector), type=base_pb2.Vectors.VECTOR_TYPE_SINGLE_FP32, name=VECTOR
                    )
                ]
            )
        )
        return await self._owners(request, limit)

    async def ids(self, key: DatasetKey, collection: Collection) -> set[Id]:
        found: set[Id] = set()
        after = ""
        while True:
            request = self._question(key, collection, _PAGE)
            request.limit, request.after = _PAGE, after
            page = [result.metadata.id for result in await self._results(request)]
            found.update(page)
            if len(page) < _PAGE:
                return found
            after = page[-1]

    # ── the service's own forms ──────────────────────────────────────────────────────────────────────────────────────

    async def _put(self, rows: Sequence[IndexRow]) -> None:
        reply = await self._wire.write(batch_pb2.BatchObjectsRequest(objects=[self._object(row) for row in rows]))
        if reply.errors:
            raise _worst(error.error for error in reply.errors)

    def _object(self, row: IndexRow) -> batch_pb2.BatchObject:
        properties = batch_pb2.BatchObject.Properties()
        properties.non_ref_properties.update({"words": row.words, "owner_id": row.owner_id or row.id})
        return batch_pb2.BatchObject(
            uuid=row.id,
            collection=collection_name(self._prefix, row.collection),
            tenant=row.key.dataset_id,
            properties=properties,
            vectors=[
                base_pb2.Vectors(
                    name=VECTOR, vector_bytes=self._bytes(row.vector), type=base_pb2.Vectors.VECTOR_TYPE_SINGLE_FP32
                )
            ],
        )

    def _bytes(self, vector: NDArray[np.float32]) -> bytes:
        if vector.shape != (self._dimension,):
            raise Permanent(
                f"a vector has the shape {vector.shape}, the index holds vectors of {self._dimension} numbers"
            )
        if not np.isfinite(vector).all():
            raise Permanent("a vector holds a number that is none: nothing would ever be near it")
        return vector.astype("<f4").tobytes()

    def _question(self, key: DatasetKey, collection: Collection, limit: int) -> search_get_pb2.SearchRequest:
        return search_get_pb2.SearchRequest(
            collection=collection_name(self._prefix, collection),
            tenant=key.dataset_id,
            limit=limit * (_CHUNKS_PER_TEXT if collection == "Chunk" else 1),
            properties=search_get_pb2.PropertiesRequest(non_ref_properties=["owner_id"]),
            metadata=search_get_pb2.MetadataRequest(uuid=True, distance=True),
            uses_123_api=True,
            uses_125_api=True,
            uses_127_api=True,
        )

    async def _owners(self, request: search_get_pb2.SearchRequest, limit: int) -> list[tuple[Id, float]]:
        """Each owner once, at its best place, with 1 - distance."""
        found: dict[Id, float] = {}
        for result in await self._results(request):
            owner = result.properties.non_ref_props.fields["owner_id"].text_value
            found.setdefault(owner, 1.0 - result.metadata.distance)
        return list(islice(found.items(), limit))

    async def _results(self, request: search_get_pb2.SearchRequest) -> Sequence[search_get_pb2.SearchResult]:
        try:
            return tuple((await self._wire.search(request)).results)
        except UnknownTenant:
            return ()


def _worst(messages: Iterable[str]) -> StrandlineError:
    """One error for the batch: if any row can never be written, repeating the others with it is no use."""
    errors = [of_message(message, "write a row") for message in set(messages)]
    return next((error for error in errors if isinstance(error, Permanent)), errors[0])
