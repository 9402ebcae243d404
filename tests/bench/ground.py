"""What every figure stands on: a stack of its own, workers and a server as processes, their CPU time."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import psutil

from strandline.client import Client
from strandline.stack import Addresses, NativeStack
from strandline.stack.services import SERVICES
from tests.bench.watch import RunWatch, watching
from tests.chaos.fleet import Worker, fleet, worker_environment
from tests.chaos.flow import outgoing_request
from topics import ids
from topics.clock import SystemClock
from topics.kafka.admin import ensure_topics
from topics.kafka.log import KafkaLog
from topics.keys import DatasetKey
from topics.records import RememberRequest
from topics.registry import TOPICS


@dataclass
class Ground:
    """A running system and the means to feed and watch it."""

    addresses: Addresses
    log: KafkaLog
    watch: RunWatch
    workers: list[Worker]
    stack: NativeStack
    environment: Mapping[str, str]
    sent_at: dict[str, float] = field(default_factory=dict)
    """Run → loop time at which it was accepted."""

    def request(self, key: DatasetKey, number: int, text: str) -> RememberRequest:
        now = SystemClock().now()
        name = f"{key.user_id}-{number}"
        return RememberRequest(
            user_id=key.user_id,
            dataset=key.dataset,
            run_id=ids.run_id(key, "api", name, ""),
            idempotency_key=name,
            text=text,
            reference_time=now,
            accepted_at=now,
        )

    async def send(self, requests: list[RememberRequest]) -> list[str]:
        """Durable when it returns; run ids in order."""
        await self.log.append([outgoing_request(request) for request in requests])
        now = asyncio.get_running_loop().time()
        runs = [str(request.run_id) for request in requests]
        self.sent_at.update(dict.fromkeys(runs, now))
        return runs

    def cpu(self) -> dict[str, float]:
        """CPU seconds used so far, by process."""
        used: dict[str, float] = {}
        for worker in self.workers:
            if worker.process is not None and worker.process.returncode is None:
                used[worker.name] = _cpu(worker.process.pid)
        for name in SERVICES:
            process = self.stack.process(name)
            if process is not None:
                used[name] = _cpu(process.pid)
        used["bench"] = _cpu(psutil.Process().pid)
        return used

    async def metrics(self) -> dict[str, float]:
        """The samples of all workers' /metrics, added up, by name and labels as they are printed."""
        found: dict[str, float] = {}
        async with aiohttp.ClientSession() as session:
            for worker in self.workers:
                async with session.get(f"http://127.0.0.1:{_health_port(worker)}/metrics") as answer:
                    for line in (await answer.text()).splitlines():
                        if line and not line.startswith("#"):
                            name, _, value = line.rpartition(" ")
                            found[name] = found.get(name, 0.0) + float(value)
        return found


def _health_port(worker: Worker) -> int:
    lines = [json.loads(line) for line in worker.log.read_text().splitlines() if '"worker.ready"' in line]
    return int(lines[-1]["port"])


def _cpu(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


@asynccontextmanager
async def ground(
    stack: NativeStack, *, workers: int, name: str, module: str = "strandline", **settings: str
) -> AsyncIterator[Ground]:
    """Fresh topics under a prefix of their own, on a stack that runs; workers have their partitions when it yields."""
    addresses = stack.addresses
    prefix = f"{name}."
    environment = worker_environment(addresses, STRANDLINE_KAFKA__PREFIX=prefix, **settings)
    await ensure_topics(addresses.kafka_bootstrap, TOPICS, replication=1, prefix=prefix)
    async with AsyncExitStack() as open_things:
        log = await open_things.enter_async_context(KafkaLog(addresses.kafka_bootstrap, prefix=prefix))
        watch = await open_things.enter_async_context(watching(log))
        crew = await open_things.enter_async_context(fleet(environment, workers, module=module))
        made = Ground(addresses, log, watch, crew, stack, environment)
        await _warm_up(made)
        yield made


async def _warm_up(made: Ground) -> None:
    """One text on every partition, so that no figure has the first assignment, compilation or connection in it."""
    keys = [DatasetKey("warm", f"set-{number}") for number in range(200)]
    runs = await made.send([made.request(key, 0, "Ada | uses | Kafka") for key in keys])
    await made.watch.until(runs, "complete", 60.0)


@asynccontextmanager
async def server(made: Ground) -> AsyncIterator[tuple[Client, str, int]]:
    """`strandline serve` on a free port: a client, its address, its process id."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "strandline",
        "serve",
        "--port",
        "0",
        env=made.environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            line = (await process.stdout.readline()).decode()
        url = line.split()[-1]
        async with Client(url) as client, aiohttp.ClientSession() as session:
            async with asyncio.timeout(60):
                while True:
                    async with session.get(f"{url}/ready") as answer:
                        if answer.status == 200:
                            break
                    await asyncio.sleep(0.2)
            yield client, url, process.pid
    finally:
        process.terminate()
        await process.wait()
