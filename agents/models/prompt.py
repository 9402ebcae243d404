"""The prompt of one extraction: fixed instructions from a file, and the passage, fenced so that it cannot pose as instructions."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources

from agents.models.base import Passage
from graph.relations import RELATIONS

PROMPT_VERSION = "extract-1"
"""Name of the file in prompts/ and part of each `model_id`. A changed text gets a new file and a new name: stored facts say which one they are from."""


@cache
def instructions() -> str:
    """The system prompt: the same for every passage, so that vendors can cache it."""
    text = resources.files("agents.models").joinpath("prompts", f"{PROMPT_VERSION}.md").read_text(encoding="utf-8")
    known = [row for row in RELATIONS.values() if not row.bookkeeping]
    return text.strip().format(
        single_valued=", ".join(row.name for row in known if row.single_valued),
        many_valued=", ".join(row.name for row in known if not row.single_valued),
    )


def request_text(passage: Passage) -> str:
    """The user's turn: reference time, then title, author and text as data between two marked lines.

    The mark is drawn from a hash of the data, so no text can contain its own and end the block early.
    """
    author = f"{_line(passage.author)} ({_line(passage.author_type)})" if passage.author else "unknown"
    # A lone surrogate cannot be sent as UTF-8; it stands for nothing anyway.
    data = f"title: {_line(passage.title) or 'none'}\nauthor: {author}\n\n{passage.text.strip()}".encode(
        "utf-8", "replace"
    ).decode()
    mark = "===== " + hashlib.sha256(data.encode()).hexdigest()[:16]
    now = passage.reference_time
    return f"Reference time: {now.strftime('%Y-%m-%dT%H:%M:%SZ')} ({now.strftime('%A')})\n{mark}\n{data}\n{mark}"


def _line(text: str) -> str:
    return " ".join(text.split())[:300]
