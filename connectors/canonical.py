"""What all sources share on the way to a SourceEvent: ids, hashes, and text that any store can hold."""

from __future__ import annotations

import hashlib
import re
from typing import Literal
from uuid import UUID

from topics.keys import derived_id

CUT_MARKER = "\n[… cut]"

_UNSTORABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
_LINE_ENDS = re.compile("\r\n?|\u2028|\u2029|\x85")


def event_id(
    instance_id: str, object_id: str, version: str, change: Literal["upsert", "delete"], content_hash: str
) -> UUID:
    """The same for live, poll, backfill and import: it holds nothing of how the event came."""
    return derived_id(instance_id, object_id, version, change, content_hash)


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def clean_text(text: str) -> str:
    """Line ends as \\n; without control characters, lone surrogates and noncharacters, which JSON or a store would refuse."""
    return _UNSTORABLE.sub("", _LINE_ENDS.sub("\n", text))


def clean_line(text: str, max_chars: int = 1000) -> str:
    """One line: runs of white space become one blank; cut at `max_chars`."""
    return " ".join(clean_text(text[: max_chars * 4]).split())[:max_chars]


def cut_text(text: str, max_bytes: int) -> tuple[str, bool]:
    """The text in at most `max_bytes` of UTF-8, marker included, and whether it was cut. Never cuts inside a character."""
    raw = text.encode()
    if len(raw) <= max_bytes:
        return text, False
    room = max(0, max_bytes - len(CUT_MARKER.encode()))
    return raw[:room].decode(errors="ignore") + CUT_MARKER, True
