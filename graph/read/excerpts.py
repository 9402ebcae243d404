"""The part of a long text that an answer shows."""

from __future__ import annotations

import re

MAX_CHARS = 4000
"""Of a text in an answer: a text may have 1 MiB, an answer a hundred of them."""

_LEAD = 500
"""Characters shown before the first word that was asked for."""


def excerpt(text: str, words: str, size: int = MAX_CHARS) -> tuple[int, str]:
    """Where the part begins and the part: the whole if it fits, else from a little before the first of the words; begins at a word."""
    if len(text) <= size:
        return 0, text
    start = max(0, min(_first(text, words) - _LEAD, len(text) - size))
    if start > 0 and (gap := re.compile(r"\s").search(text, start, start + _LEAD)):
        start = gap.end()
    return start, text[start : start + size]


def _first(text: str, words: str) -> int:
    """The place of the rarest-looking word, which is the longest; 0 if none is there."""
    wanted = sorted(set(re.findall(r"\w+", words)), key=lambda word: (-len(word), word))
    for word in wanted[:16]:
        if found := re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE):
            return found.start()
    return 0
