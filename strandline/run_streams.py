"""What a stream of run events is made of: events with their places, and a bounded queue for each reader."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from datetime import timedelta

import structlog

from strandline.receipts import RunUpdate
from strandline.run_tokens import Vector
from topics.keys import DatasetKey

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Seen:
    """One event of the log, and where the reader is behind it."""

    partition: int
    offset: int
    update: RunUpdate
    vector: Vector


@dataclass(frozen=True, slots=True)
class Message:
    """What a stream yields: an event, or none (a heartbeat); `token` continues behind it."""

    token: str
    update: RunUpdate | None


class Subscription:
    """One stream's queue. Filters by user and, if given, dataset."""

    def __init__(self, user_id: str, dataset: str | None, vector: Vector, room: int) -> None:
        self._user_id = user_id
        self._dataset = dataset
        self._keys = user_keys(user_id) if dataset is None else DatasetKey(user_id, dataset).encode()
        self._room = room
        self._waiting: deque[Seen] = deque()
        self._moved = asyncio.Event()
        self._read = asyncio.Event()
        self.vector = vector
        """Where the reader is once it has taken all that waits."""
        self.ended = False

    def concerns(self, key: bytes | None) -> bool:
        """Whether a record with that key can be for this stream."""
        return key is not None and (key == self._keys if self._dataset is not None else key.startswith(self._keys))

    def offer(self, seen: Seen) -> None:
        """Takes an event behind the reader's place; ends the stream when the reader is too slow for it."""
        if self.ended or seen.offset < self.vector[seen.partition]:
            return
        self.vector = _later(self.vector, seen.vector)
        if seen.update.user_id != self._user_id or self._dataset not in (None, seen.update.dataset):
            return
        if len(self._waiting) >= self._room:
            log.info("events.slow_reader", waiting=len(self._waiting))
            self.end()
            return
        self._waiting.append(Seen(seen.partition, seen.offset, seen.update, self.vector))
        self._moved.set()

    def end(self) -> None:
        self.ended = True
        self._moved.set()
        self._read.set()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def until_read(self) -> None:
        """Returns once there is room for history, or the stream has ended: who reads history sets the pace."""
        while len(self._waiting) > self._room // 4 and not self.ended:
            self._read.clear()
            await self._read.wait()

    async def take(self, patience: timedelta) -> Seen | None:
        """The next event; None when none came in time, or never will."""
        if not self._waiting and not self.ended:
            self._moved.clear()
            try:
                async with asyncio.timeout(patience.total_seconds()):
                    await self._moved.wait()
            except TimeoutError:
                return None
        self._read.set()
        return self._waiting.popleft() if self._waiting and not self.ended else None


def user_keys(user_id: str) -> bytes:
    """What the keys of all the user's datasets begin with, and no other user's."""
    return DatasetKey(user_id, "").encode().removesuffix(b'""]')


def _later(one: Vector, other: Vector) -> Vector:
    return tuple(map(max, one, other))
