"""Vectors from OpenAI's embeddings route, or from any server that speaks it (`base_url`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from types import MappingProxyType

import numpy as np
from openai import Omit, omit
from openai.types import CreateEmbeddingResponse
from pydantic import SecretStr

from agents.models.base import Vectors
from agents.models.openai_model import open_client
from agents.models.vectors import unit_length
from agents.models.vendor_calls import VendorCalls
from topics.errors import Permanent, Retryable

DEFAULT_MODEL = "text-embedding-3-small"

DIMENSIONS = MappingProxyType(
    {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}
)
"""Full dimensions as the vendor's model pages give them; other models must be told (`dimension`)."""

BATCH_TEXTS = 2_048
BATCH_CHARS = 250_000
"""Limits of one request: 2,048 inputs, 300,000 tokens. A token is rarely less than a character, so characters are the safe measure."""

TEXT_CHARS = 8_000
"""The rest of a longer text is not read (limit 8,191 tokens); chunks stay far below."""


class OpenAIEmbedder:
    """An Embedder. One request for up to BATCH_TEXTS texts."""

    def __init__(
        self,
        api_key: SecretStr | None,
        *,
        model: str = "",
        dimension: int | None = None,
        base_url: str = "",
        timeout: timedelta = timedelta(seconds=60),
        concurrency: int = 16,
        plain_numbers: bool | None = None,
    ) -> None:
        self._model = model or DEFAULT_MODEL
        full = DIMENSIONS.get(self._model)
        if dimension is None and full is None:
            raise Permanent(f"the dimension of the embedding model {self._model} is not known; set it")
        self._dimension = dimension or full or 0
        self._shortened: int | Omit = self._dimension if full is not None and self._dimension != full else omit
        self._calls = VendorCalls(
            "OpenAI" if not base_url else "the embedding server",
            service="embedder",
            deadline=timeout,
            concurrency=concurrency,
        )
        self._client = open_client(api_key, base_url, timeout)
        # The SDK asks for base64, a quarter of the bytes; own servers often know plain numbers only.
        self._plain_numbers = bool(base_url) if plain_numbers is None else plain_numbers

    @property
    def model_id(self) -> str:
        return f"openai/{self._model}@{self._dimension}"

    @property
    def dimension(self) -> int:
        return self._dimension

    async def embed(self, texts: Sequence[str]) -> Vectors:
        parts = [await self._calls.run(partial(self._embed, batch)) for batch in batches(texts)]
        return np.concatenate(parts) if parts else np.empty((0, self._dimension), np.float32)

    async def _embed(self, texts: list[str]) -> Vectors:
        reply = await self._client.embeddings.create(
            model=self._model,
            input=texts,
            dimensions=self._shortened,
            encoding_format="float" if self._plain_numbers else omit,
        )
        if not isinstance(reply, CreateEmbeddingResponse) or sorted(row.index for row in reply.data) != list(
            range(len(texts))
        ):
            raise Retryable("the embedding server did not send one vector a text; the call is repeated")
        rows = sorted(reply.data, key=lambda row: row.index)
        if any(len(row.embedding) != self._dimension for row in rows):
            raise Permanent(
                f"{self._model} gives vectors of {len(rows[0].embedding)} numbers, not {self._dimension}; set the dimension"
            )
        return unit_length(np.array([row.embedding for row in rows], np.float32))

    async def close(self) -> None:
        await self._client.close()


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Texts in order, cut to what one request may carry. An empty text, which the vendor refuses, becomes a space."""
    batch: list[str] = []
    chars = 0
    for text in texts:
        cut = text[:TEXT_CHARS] if text.strip() else " "
        if batch and (len(batch) == BATCH_TEXTS or chars + len(cut) > BATCH_CHARS):
            yield batch
            batch, chars = [], 0
        batch.append(cut)
        chars += len(cut)
    if batch:
        yield batch
