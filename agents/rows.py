"""The words by which rows of the index are found. Writer (vectors) and indexer (rows) must agree on them, and they do
by calling this."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from topics import ids
from topics.records import Chunk


def words_of_chunks(artifact_id: UUID, title: str, text: str, chunks: Sequence[Chunk]) -> dict[str, str]:
    """Row id → words of each piece of a text, in order; a text of one piece is its own. The title belongs to the
    first."""
    pieces = [text[chunk.start : chunk.end] for chunk in chunks] or [text]
    if title and title not in pieces[0]:
        pieces[0] = f"{title}\n{pieces[0]}"
    return {str(ids.chunk_id(artifact_id, index)): piece for index, piece in enumerate(pieces)}


def words_of_entity(name: str, type_: str, description: str) -> str:
    return f"{name} ({type_}): {description}" if description else f"{name} ({type_})"


def words_of_fact(description: str) -> str:
    return description
