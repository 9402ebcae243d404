"""Doubles that ship: a model that does what the text says, an embedder that hashes. For tests, benchmarks and chaos runs, never offered to users.

`ScriptedModel` reads this little grammar, line by line; lines that fit none of it are plain prose and yield nothing:

    Ada | works_at | Acme                             a fact
    Ada | works_at | Acme | 2025-01-02                … true from then on (ISO 8601, any exactness)
    Ada | works_at | Acme | 2025-01-02 | 2025-06-30   … until then; the start may be empty
    - Ada | works_at | Acme | 2025-06-30              a fact that ends: the date is its end
    Ada:person | works_at | Acme:organization         types, after a colon
    = Ada:person | a mathematician                    an entity without a fact, with or without a description
    ! outage 2                                        the first two reads of this text fail with Outage
    ! retryable                                       … the first one with Retryable
    ! permanent    ! needs_reauth                     … every read fails for good

A text that is one JSON object is taken for a model's answer as it is (`{"entities": [...], "facts": [...]}`, the fields of answer.py).
"I" in a fact is the passage's author. The same text always gives the same Extraction.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from agents.models.answer import normalise
from agents.models.base import Extraction, Passage, Usage, Vectors
from agents.models.vectors import unit_length
from topics.errors import NeedsReauth, Outage, Permanent, Retryable, StrandlineError

Script = Callable[[Passage], Extraction]

MODEL_ID = "scripted/lines-1"

_TYPED = re.compile(r"(.*\S):([a-z_]+)$")


class ScriptedModel:
    """A LanguageModel that obeys its text, or the function it is given. `calls` counts, `passages` keeps what was asked if told to."""

    def __init__(self, script: Script | None = None, *, latency: timedelta = timedelta(0), keep: bool = False) -> None:
        self._script = script or read_script
        self._latency = latency.total_seconds()
        self._keep = keep
        self._failed: Counter[str] = Counter()
        self.calls = 0
        self.passages: list[Passage] = []

    @property
    def model_id(self) -> str:
        return MODEL_ID

    async def extract(self, passage: Passage) -> Extraction:
        self.calls += 1
        if self._keep:
            self.passages.append(passage)
        if self._latency:
            await asyncio.sleep(self._latency)
        if "!" in passage.text:
            self._fail_as_told(passage.text)
        return self._script(passage)

    async def close(self) -> None:
        """Nothing to close."""

    def _fail_as_told(self, text: str) -> None:
        for line in text.splitlines():
            match line.split():
                case ["!", kind, *times] if kind in _FAILURES:
                    limit = int(times[0]) if times and times[0].isdigit() else 1
                    error = _FAILURES[kind]()
                    if isinstance(error, Permanent) or self._failed[text] < limit:
                        self._failed[text] += 1
                        raise error


_FAILURES: dict[str, Callable[[], StrandlineError]] = {
    "outage": lambda: Outage("model", "the script says: the model is away"),
    "retryable": lambda: Retryable("the script says: try again", retry_after=timedelta(0)),
    "permanent": lambda: Permanent("the script says: this text cannot be read"),
    "needs_reauth": lambda: NeedsReauth("the script says: the key is wrong"),
}


def read_script(passage: Passage) -> Extraction:
    """What the passage's lines, or its JSON, say. Raises Retryable for a text that begins with `{` and is no JSON object."""
    text = passage.text.strip()
    raw = _json(text) if text.startswith("{") else _lines(text)
    return normalise(raw, model_id=MODEL_ID, usage=Usage(), author=passage.author, author_type=passage.author_type)


def _json(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Retryable("the script is not a JSON object")
    return found


def _lines(text: str) -> dict[str, Any]:
    entities: list[dict[str, str]] = []
    facts: list[dict[str, Any]] = []
    for line in text.splitlines():
        if line.startswith("= "):
            name, _, description = line[2:].partition("|")
            entities.append(_entity(name) | {"description": description.strip()})
        elif line.count("|") >= 2:
            ends = line.startswith("- ")
            cells = [cell.strip() for cell in (line[2:] if ends else line).split("|")]
            subject, thing = _entity(cells[0]), _entity(cells[2])
            entities += [item for item in (subject, thing) if item["name"] != "I"]
            first, second = ([*cells[3:], "", ""])[:2]
            facts.append(
                {
                    "subject": subject["name"],
                    "relation": cells[1],
                    "object": thing["name"],
                    "valid_at": None if ends else first,
                    "invalid_at": first if ends else second,
                    "ends": ends,
                }
            )
    return {"entities": entities, "facts": facts}


def _entity(cell: str) -> dict[str, str]:
    typed = _TYPED.match(cell.strip())
    return {"name": typed[1], "type": typed[2]} if typed else {"name": cell.strip(), "type": "other"}


HASH_DIMENSION = 384


class HashedEmbedder:
    """An Embedder over hashed character trigrams: equal texts are equal, texts that share words are near; no meaning. About 30 µs a short text."""

    def __init__(self) -> None:
        self.calls = 0

    @property
    def model_id(self) -> str:
        return "scripted/trigrams-1"

    @property
    def dimension(self) -> int:
        return HASH_DIMENSION

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        return hashed(texts)

    async def close(self) -> None:
        """Nothing to close."""


def hashed(texts: Sequence[str]) -> Vectors:
    """(n, 384) float32, unit length: counts of trigrams, each with a sign, so that unrelated texts lie near a right angle."""
    if not texts:
        return np.empty((0, HASH_DIMENSION), np.float32)
    padded = [f"  {text.lower()}  " for text in texts]
    codes = np.frombuffer("".join(padded).encode("utf-32-le", "replace"), np.uint32)
    # Multiply-shift over three neighbours; the constants are odd 32-bit numbers with well-spread bits (Knuth, Murmur3).
    mixed = codes[:-2] * np.uint32(2654435761) + codes[1:-1] * np.uint32(2246822519) + codes[2:] * np.uint32(3266489917)
    mixed ^= mixed >> np.uint32(15)
    mixed *= np.uint32(0x85EBCA6B)
    mixed ^= mixed >> np.uint32(13)
    bins = (mixed >> np.uint32(1)) % np.uint32(HASH_DIMENSION)
    signs = (mixed & np.uint32(1)).astype(np.float32) * 2 - 1
    if len(texts) > 1:
        # Trigrams across two texts fall into the first one's row: cut them off, so that a text's vector does not depend on its neighbour.
        lengths = np.fromiter(map(len, padded), np.int64, len(padded))
        rows = np.repeat(np.arange(len(padded)), lengths)
        inside = rows[:-2] == rows[2:]
        flat = np.bincount(
            rows[:-2][inside] * HASH_DIMENSION + bins[inside], signs[inside], len(texts) * HASH_DIMENSION
        )
    else:
        flat = np.bincount(bins, signs, HASH_DIMENSION)
    return unit_length(flat.reshape(len(texts), HASH_DIMENSION).astype(np.float32))
