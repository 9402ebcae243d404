"""What a stage may ask of a model: read one text, turn texts into vectors. Both are seams with one contract suite each.

Errors, whatever the vendor: `Outage` (service away, overloaded, timed out: wait, not counted), `Retryable` (429, a
broken answer; `retry_after` if told), `Permanent` (refused by the model, truncated, bad request), `NeedsReauth` (401,
403). Nothing else may leave an implementation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from topics.records import EntityMention, FactStatement

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Passage:
    """One text for a model to read."""

    text: str
    reference_time: datetime
    """UTC; "tomorrow" in the text counts from here."""
    title: str = ""
    author: str = ""
    """Who says "I"; "" if unknown."""
    author_type: str = "person"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call cost. Zero for local models."""

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 1


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a passage says. Every statement's subject and object is also in `entities`."""

    entities: tuple[EntityMention, ...] = ()
    statements: tuple[FactStatement, ...] = ()
    model_id: str = ""
    usage: Usage = field(default=Usage())


class LanguageModel(Protocol):
    """Reads texts. Safe for many calls at once from one event loop."""

    @property
    def model_id(self) -> str:
        """Vendor, model and prompt version, e.g. `anthropic/claude-…#extract-1`: stored on each fact it yields."""
        ...

    async def extract(self, passage: Passage) -> Extraction:
        """Entities, facts and their dates in one call. An empty Extraction for a text that says nothing."""
        ...

    async def close(self) -> None:
        """Ends connections and worker processes; later calls are an error."""
        ...


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def model_id(self) -> str:
        """Model and revision; vectors of different ids are never mixed in one index."""
        ...

    @property
    def dimension(self) -> int: ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """(n, dimension) float32, unit length, in the order of `texts`; (0, dimension) for none. One request to a
        vendor up to its batch limit."""
        ...

    async def close(self) -> None: ...
