"""Cursors come back as they went, and only with their own question."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from graph.read.cursors import Cursor
from topics.errors import Refused
from topics.keys import DatasetKey

KEY = DatasetKey("ada")
NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)


def test_a_cursor_comes_back_as_it_went() -> None:
    cursor = Cursor(20, NOON.astimezone(timezone(timedelta(hours=2))), NOON)
    back = Cursor.decode(cursor.encode(KEY, "heron"), KEY, "heron")
    assert back == cursor
    assert back.as_of.tzinfo is UTC


def test_a_cursor_of_another_question_is_refused() -> None:
    text = Cursor(20, NOON, NOON).encode(KEY, "heron")
    for key, query in ((DatasetKey("bob"), "heron"), (DatasetKey("ada", "other"), "heron"), (KEY, "egret")):
        with pytest.raises(Refused, match="another question"):
            Cursor.decode(text, key, query)


def _made(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode()


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "é",
        "%%%",
        "A" * 5000,
        _made({}),
        _made([1, 2]),
        _made([0, "2025-01-01", "x", "y"]),
        _made([[], NOON.isoformat(), 1, 1]),
    ],
)
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(Refused) as caught:
        Cursor.decode(text, KEY, "heron")
    assert caught.value.field == "cursor"


def test_a_negative_offset_is_refused() -> None:
    with pytest.raises(Refused):
        Cursor.decode(Cursor(-1, NOON, NOON).encode(KEY, "q"), KEY, "q")
