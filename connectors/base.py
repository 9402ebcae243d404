"""What a file source is: something that reads a path and yields source events, one item at a time.

A reader never stops at a bad item: what cannot become an event is yielded as `Skipped` with the reason. Only a path that is not of the
source's kind at all raises, as `Refused`. Reading the same path twice yields the same events with the same ids, so a repeat adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from topics.clock import Clock, SystemClock
from topics.records import SourceEvent

MAX_ITEM_BYTES = 25 * 1024 * 1024
"""What one mail may weigh: Gmail's own limit for a message."""

MAX_TEXT_BYTES = 256 * 1024
"""What of a text travels (UTF-8); the rest is cut, with a marker and the flag `truncated`."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """For whom a path is read and from where on."""

    user_id: str
    dataset: str = "main"
    instance_id: str = ""
    """The account or workspace the events belong to; "" lets the source name it (mail: `mail`; Slack: the team id)."""
    after: str = ""
    """The cursor of the last item that was handled; "" reads from the start."""
    self_ids: frozenset[str] = frozenset()
    """Mail addresses (lower case) and Slack user ids that are the user's own. Empty: facts about "me" are absent, not false."""
    max_item_bytes: int = MAX_ITEM_BYTES
    max_text_bytes: int = MAX_TEXT_BYTES
    clock: Clock = field(default_factory=SystemClock)


@dataclass(frozen=True, slots=True)
class Skipped:
    """An item that is not remembered, and why."""

    where: str
    """For a person to find it: file and offset, line or place."""
    reason: str
    """One stable word: oversized, unreadable, malformed, empty, bookkeeping, unchanged, …"""
    detail: str = ""
    """What was seen, without the item's text."""


@dataclass(frozen=True, slots=True)
class Item:
    """One step of reading."""

    outcome: SourceEvent | Skipped
    cursor: str
    """Give it back as `ReadOptions.after` to go on behind this item. The same for every reading of an unchanged path."""
    done_bytes: int
    """How far reading is, of `size`; never falls."""


class FileSource(Protocol):
    """Reads one kind of file or folder. Holds no state between calls; needs no network."""

    name: str
    """The key in CONNECTORS, and `connector` of every event."""

    def detect(self, path: Path) -> bool:
        """Whether the path looks like this kind: reads a few kilobytes at most. False for a path that is not there."""
        ...

    def size(self, path: Path) -> int:
        """An estimate of the work in bytes, for a progress bar: cheap, never exact for an archive. Refused as for `read`."""
        ...

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        """Yields every item in a fixed order, holding one at a time.

        Raises Refused at the first step when the path is missing or of another kind, and when `options.after` does not fit
        the path any more (it was rewritten since). A bad item is a Skipped.
        """
        ...
