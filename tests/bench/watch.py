"""Sees every run event as it arrives and notes when: the one clock of all latencies here is this process's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from topics.log import Log


@dataclass
class RunWatch:
    """First sight (loop time, seconds) of each state of each run."""

    seen: dict[str, dict[str, float]] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow(self, log: Log, start: Mapping[int, int]) -> None:
        loop = asyncio.get_running_loop()
        async for incoming in log.follow("remember.runs", start):
            event = json.loads(incoming.value or b"{}")
            self.seen.setdefault(event["run_id"], {}).setdefault(event["state"], loop.time())
            self._changed.set()

    def at(self, run_id: str, state: str) -> float | None:
        return self.seen.get(run_id, {}).get(state)

    def reached(self, runs: Collection[str], state: str) -> list[float]:
        """Times at which these runs were first seen in the state, in order of time."""
        return sorted(at for run in runs if (at := self.at(run, state)) is not None)

    async def until(self, runs: Collection[str], state: str, patience: float = 120.0) -> None:
        """Until all are in the state; TimeoutError when nothing new was seen for `patience` seconds."""
        while any(self.at(run, state) is None for run in runs):
            self._changed.clear()
            async with asyncio.timeout(patience):
                await self._changed.wait()


@asynccontextmanager
async def watching(log: Log) -> AsyncIterator[RunWatch]:
    """A RunWatch that sees all events from now on."""
    watch = RunWatch()
    task = asyncio.create_task(watch.follow(log, await log.ends("remember.runs")))
    try:
        yield watch
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
