"""Workers as processes on the real broker, what is fed to them and what came of it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import aiohttp

from tests.integration.agents.toy_worker import ToyOptions, ToyStore
from tests.kafka_topics import own_topics
from topics.codec import decode
from topics.envelope import Incoming, Outgoing
from topics.kafka.groups import group_lag
from topics.kafka.log import KafkaLog
from topics.keys import derived_id
from topics.records import DeadLetter, RememberRequest, RunEvent

ROOT = Path(__file__).parents[3]


async def until(condition: Callable[[], Awaitable[bool]], what: str, deadline_s: float = 60.0) -> None:
    """Waits for a condition, not for a time."""
    ends_at = time.monotonic() + deadline_s
    while not await condition():
        assert time.monotonic() < ends_at, f"not within {deadline_s:g} s: {what}"
        await asyncio.sleep(0.2)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class Worker:
    process: subprocess.Popen[bytes]
    port: int
    log_file: Path

    async def is_ready(self) -> bool:
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{self.port}/ready", timeout=aiohttp.ClientTimeout(total=5)) as answer,
            ):
                return answer.status == 200
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False

    async def ready(self) -> Worker:
        async def is_ready() -> bool:
            assert self.process.poll() is None, self.log()
            return await self.is_ready()

        await until(is_ready, f"worker ready: {self.log()[-2000:]}")
        return self

    async def get(self, path: str) -> str:
        async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{self.port}{path}") as answer:
            return await answer.text()

    async def said(self, path: str) -> str:
        """Status and body; "" if nobody answers."""
        try:
            async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{self.port}{path}") as answer:
                return f"{answer.status} {await answer.text()}"
        except (aiohttp.ClientError, OSError):
            return ""

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def ended(self, deadline_s: float) -> int:
        """The exit code."""

        async def has_ended() -> bool:
            return self.process.poll() is not None

        await until(has_ended, f"worker ended: {self.log()[-3000:]}", deadline_s)
        return int(self.process.returncode)

    def log(self) -> str:
        return self.log_file.read_text(errors="replace")


class World:
    """One test's topics, store and workers."""

    def __init__(self, options: ToyOptions, folder: Path, log: KafkaLog, store: ToyStore) -> None:
        self.options = options
        self.folder = folder
        self.log = log
        self.store = store
        self.workers: list[Worker] = []
        self.fed: dict[str, list[int]] = {}

    def start(self, **changes: object) -> Worker:
        port = free_port()
        # To see a test fail without its guard: GUARDS_OFF=epochs pytest … (names in toy_worker.switch_off and ToyStore).
        off = tuple(filter(None, os.environ.get("GUARDS_OFF", "").split(",")))
        changes.setdefault("off", off)
        options = replace(self.options, port=port, **changes)  # type: ignore[arg-type]
        log_file = self.folder / f"worker{len(self.workers)}.log"
        with log_file.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.integration.agents.toy_worker", options.as_argument()],
                cwd=ROOT,
                stdout=output,
                stderr=output,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        worker = Worker(process, port, log_file)
        self.workers.append(worker)
        return worker

    async def feed(
        self, dataset: str, numbers: Iterable[int], how: Callable[[int], str] = lambda number: "fine"
    ) -> None:
        for number in numbers:
            await self.feed_one(dataset, number, how(number))

    async def feed_one(self, dataset: str, number: int, how: str = "fine") -> None:
        now = datetime.now(UTC)
        run_id = derived_id("toy-run", self.options.prefix, dataset, str(number))
        request = RememberRequest(
            user_id="u",
            dataset=dataset,
            run_id=run_id,
            idempotency_key=f"{dataset}-{number}",
            text=f"{how} {number}",
            reference_time=now,
            accepted_at=now,
        )
        self.fed.setdefault(dataset, []).append(number)
        await self.log.append([Outgoing("remember.requests", request, run_id, "test", now)])

    async def behind(self) -> int:
        lags = await group_lag(
            self.options.bootstrap, self.options.group, topics=["remember.requests"], prefix=self.options.prefix
        )
        return sum(lag.behind for lag in lags)

    async def all_committed(self, deadline_s: float = 60.0) -> None:
        async def is_so() -> bool:
            return await self.behind() == 0

        await until(is_so, f"everything committed: {self.workers[-1].log()[-3000:]}", deadline_s)

    async def everything_on(self, topic: str) -> list[Incoming]:
        ends = {partition: end for partition, end in (await self.log.ends(topic)).items() if end}
        found: list[Incoming] = []
        if not ends:
            return found
        left = sum(ends.values())
        async for incoming in self.log.follow(topic, dict.fromkeys(ends, 0)):
            found.append(incoming)
            left -= 1
            if not left:
                break
        return found

    async def dead_letters(self) -> list[DeadLetter]:
        found = [decode(incoming) for incoming in await self.everything_on("dead.letters")]
        return [letter for letter in found if isinstance(letter, DeadLetter)]

    async def run_events(self) -> list[RunEvent]:
        found = [decode(incoming) for incoming in await self.everything_on("remember.runs")]
        return [event for event in found if isinstance(event, RunEvent)]

    def assert_each_once_in_order(self, *, without: Iterable[int] = ()) -> None:
        left_out = set(without)
        expected = {
            dataset: [number for number in numbers if number not in left_out] for dataset, numbers in self.fed.items()
        }
        assert self.store.effects() == {dataset: numbers for dataset, numbers in expected.items() if numbers}

    def end(self) -> None:
        for worker in self.workers:
            if worker.process.poll() is None:
                worker.process.kill()
            worker.process.wait(10)
        self.store.close()


@asynccontextmanager
async def world(bootstrap: str, folder: Path) -> AsyncIterator[World]:
    async with own_topics(bootstrap) as prefix, KafkaLog(bootstrap, prefix=prefix) as log:
        path = str(folder / "store.db")
        made = World(ToyOptions(bootstrap, prefix, path, 0), folder, log, ToyStore(path))
        try:
            yield made
        finally:
            made.end()
