"""The place in a search's answer, as an opaque text. It carries the times of the first page: later pages judge at the same."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from datetime import UTC, datetime

from topics.errors import Refused
from topics.keys import DatasetKey, derived_id

_FIELD = "cursor"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The next page begins after `offset` hits."""

    offset: int
    as_of: datetime
    known_at: datetime

    def encode(self, key: DatasetKey, query: str) -> str:
        parts = [self.offset, self.as_of.isoformat(), self.known_at.isoformat(), _question(key, query)]
        return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")

    @staticmethod
    def decode(text: str, key: DatasetKey, query: str) -> Cursor:
        """Raises Refused for what is no cursor, or one of another question."""
        try:
            offset, as_of, known_at, question = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
            cursor = Cursor(int(offset), _instant(as_of), _instant(known_at))
        except (ValueError, TypeError, binascii.Error, RecursionError, OverflowError):
            raise Refused("`cursor` is none: take the one that the previous page gave", field=_FIELD) from None
        if question != _question(key, query) or cursor.offset < 0:
            raise Refused(
                "`cursor` belongs to another question: ask that one again, or start without a cursor", field=_FIELD
            )
        return cursor


def _instant(text: object) -> datetime:
    at = datetime.fromisoformat(str(text))
    if at.tzinfo is None:
        raise ValueError("no zone")
    return at.astimezone(UTC)


def _question(key: DatasetKey, query: str) -> str:
    return str(derived_id("question", key.user_id, key.dataset, query))
