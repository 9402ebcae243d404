"""What a name and a text must be, wherever they come in: the edges ask first, intake asks again of what was produced straight to a topic.

Each gives its argument back or raises ValueError with a phrase that goes on after the field's name. From features.md 3, 4, 8 and 13.
"""

from __future__ import annotations

import unicodedata
from typing import Final

MAX_TEXT_BYTES: Final = 1_048_576
"""features.md item 4."""

MAX_NAME_BYTES: Final = 128

MAX_SHORT_CHARACTERS: Final = 1024
"""Of a title, an author, a tag: the router cuts to it, intake refuses what is over it."""


def utf8(value: str) -> bytes:
    """Its bytes."""
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise ValueError("has half a surrogate pair, which no UTF-8 text can hold") from None


def without_controls(value: str, limit: int) -> str:
    """One line of at most `limit` bytes."""
    size = len(utf8(value))
    if size > limit:
        raise ValueError(f"has {size} bytes, more than the {limit} allowed")
    if any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in value):
        raise ValueError("must have no control characters or line breaks")
    return value


def name(value: str) -> str:
    """Of a user, a dataset, a session: not blank, one line, at most 128 bytes."""
    if not value.strip():
        raise ValueError("must not be empty or blank")
    return without_controls(value, MAX_NAME_BYTES)


def text(value: str) -> str:
    """Something to remember: not blank, without NUL. Its size is judged apart."""
    utf8(value)
    if not value.strip():
        raise ValueError("must not be empty or blank")
    if "\0" in value:
        raise ValueError(
            "must have no NUL character: programs that read the text later would take it for the end; remove it and send again"
        )
    return value
