"""Long texts are cut before a model reads them (features.md 140–148)."""

from __future__ import annotations

import re

from topics.records import Chunk

CHUNK_CHARACTERS = 4096
"""1,024 tokens at four characters each, the usual rule for English; a tokenizer would bind us to one vendor."""

OVERLAP_CHARACTERS = 819
"""20 % (features.md 141)."""

_BOUNDARIES = (re.compile(r"\n\s*\n"), re.compile(r"[.!?…]['\")\]]*\s"), re.compile(r"\n"), re.compile(r"\s"))
"""Best first: paragraph, sentence, line, word."""


def cut(text: str) -> tuple[Chunk, ...]:
    """Overlapping pieces that cover the text, as character ranges; () for a text of one piece.

    A piece ends at the last paragraph, else sentence, line or word within its final 15 %; a text without any boundary
    is cut hard.
    """
    if len(text) <= CHUNK_CHARACTERS:
        return ()
    chunks: list[Chunk] = []
    start = 0
    while True:
        end = _end_of(text, start)
        chunks.append(Chunk(index=len(chunks), start=start, end=end))
        if end == len(text):
            return tuple(chunks)
        start = _start_after(text, end)


def _end_of(text: str, start: int) -> int:
    limit = start + CHUNK_CHARACTERS
    if limit >= len(text):
        return len(text)
    window = limit - CHUNK_CHARACTERS * 15 // 100
    for boundary in _BOUNDARIES:
        ends = [match.end() for match in boundary.finditer(text, window, limit)]
        if ends:
            return ends[-1]
    return limit


def _start_after(text: str, end: int) -> int:
    """The overlap begins at a word."""
    start = end - OVERLAP_CHARACTERS
    space = _BOUNDARIES[-1].search(text, start, end)
    return space.end() if space and space.end() < end else start
