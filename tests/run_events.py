"""Small records in any number, numbered per user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime
from uuid import UUID

from topics.codec import decode
from topics.envelope import Incoming, Outgoing
from topics.keys import derived_id
from topics.log import Log
from topics.records import RunEvent
from topics.registry import STAGE_PARTITIONS

TOPIC = "remember.runs"
FROM_THE_START: Mapping[int, int] = dict.fromkeys(range(STAGE_PARTITIONS), 0)

_AT = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)


def numbered(user: str, number: int) -> Outgoing:
    """The user's record of that number; its id is derived, so a repeat can be told."""
    run_id = derived_id("test-run", user, str(number))
    event = RunEvent(user_id=user, run_id=run_id, state="accepted", at=_AT, accepted_at=_AT, seq=number)
    return Outgoing(TOPIC, event, run_id, "test", _AT, subject=str(run_id), sequence=number)


def number_of(incoming: Incoming) -> tuple[str, int]:
    """User and number of such a record."""
    record = decode(incoming)
    assert isinstance(record, RunEvent)
    assert record.seq is not None
    return record.user_id, record.seq


def record_id(incoming: Incoming) -> UUID:
    """Which record it is, however often it was sent."""
    return derived_id("test-run", *map(str, number_of(incoming)))


async def take(
    log: Log, count: int, start: Mapping[int, int] = FROM_THE_START, *, topic: str = TOPIC, seconds: float = 30
) -> list[Incoming]:
    """So many records from the start on. TimeoutError if they do not come."""
    found: list[Incoming] = []
    following = log.follow(topic, start)
    try:
        async with asyncio.timeout(seconds):
            async for incoming in following:
                found.append(incoming)
                if len(found) == count:
                    break
    finally:
        if isinstance(following, AsyncGenerator):
            await following.aclose()
    return found
