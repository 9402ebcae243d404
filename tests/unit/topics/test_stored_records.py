"""What a release once wrote is read for ever, and as the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.sample_records import STORED
from topics.codec import decode
from topics.envelope import Envelope, Incoming
from topics.registry import TOPICS

FILES = sorted(STORED.glob("*.json"))


def contains(whole: Any, part: Any) -> bool:
    """Whether all of `part` is in `whole`; objects of `whole` may have further fields, which a later release added."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(name in whole and contains(whole[name], part[name]) for name in part)
    if isinstance(part, list):
        return isinstance(whole, list) and len(whole) == len(part) and all(map(contains, whole, part))
    return bool(whole == part)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_stored_record_is_read_as_it_was_then(path: Path) -> None:
    stored = json.loads(path.read_text(encoding="utf-8"))
    headers = tuple((name, value.encode()) for name, value in stored["headers"].items())
    record = decode(
        Incoming(stored["topic"], 0, 0, stored["key"].encode(), json.dumps(stored["value"]).encode(), headers)
    )
    assert contains(record.model_dump(mode="json"), stored["reads_as"])
    assert Envelope.read(headers).type == stored["headers"]["ce_type"]


def test_every_topic_has_a_stored_record() -> None:
    assert {path.stem for path in FILES} >= {spec.name for spec in TOPICS}
