"""Workers as processes over a stack of their own, watched: who ends without having been killed is a failure of the test."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from strandline.stack import Addresses

SESSION_TIMEOUT_S = 6
"""The least that Kafka takes: a killed worker's partitions stand still so long."""


def worker_environment(addresses: Addresses, **more: str) -> dict[str, str]:
    """Scripted models: what is tested is the path, not the reading."""
    settings = {
        "STRANDLINE_MODEL__PROVIDER": "scripted",
        "STRANDLINE_EMBEDDER__PROVIDER": "scripted",
        "STRANDLINE_KAFKA__SESSION_TIMEOUT": f"PT{SESSION_TIMEOUT_S}S",
        "STRANDLINE_LOG_FORMAT": "json",
        "STRANDLINE_LOG_LEVEL": "info",
        **addresses.as_environment(),
        **more,
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("STRANDLINE_")}
    return inherited | settings


@dataclass
class Worker:
    """One `strandline worker`; `generation` counts its starts."""

    name: str
    environment: Mapping[str, str]
    log: Path
    module: str = "strandline"
    generation: int = 0
    process: asyncio.subprocess.Process | None = None
    killed: bool = False
    deaths: list[str] = field(default_factory=list)
    """Ends that nobody asked for."""

    async def start(self) -> None:
        self.generation += 1
        self.killed = False
        with self.log.open("ab") as out:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", self.module, "worker", env=self.environment, stdout=out, stderr=out
            )

    def check(self) -> None:
        """Notes an end that nobody asked for."""
        if self.process is not None and self.process.returncode is not None and not self.killed:
            self.deaths.append(f"{self.name} (start {self.generation}) ended with {self.process.returncode}")
            self.killed = True

    async def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        assert self.process is not None
        self.check()
        self.killed = True
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    def send(self, number: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def stop(self, patience: float = 60.0) -> int:
        """SIGTERM; its exit code, or SIGKILL after `patience` seconds."""
        assert self.process is not None
        self.check()
        self.killed = True
        if self.process.returncode is None:
            self.process.terminate()
            try:
                async with asyncio.timeout(patience):
                    await self.process.wait()
            except TimeoutError:
                self.process.kill()
                await self.process.wait()
        return self.process.returncode or 0


@asynccontextmanager
async def fleet(
    environment: Mapping[str, str], count: int, *, module: str = "strandline"
) -> AsyncIterator[list[Worker]]:
    """`count` running workers, ended with the block; their logs are printed from the end where one died."""
    folder = Path(tempfile.mkdtemp(prefix="strandline-fleet-"))
    workers = [Worker(f"worker{n}", environment, folder / f"worker{n}.log", module) for n in range(count)]
    try:
        for worker in workers:
            await worker.start()
        yield workers
    finally:
        for worker in workers:
            worker.check()
            if worker.deaths:
                print(f"{worker.deaths}\n{worker.log.read_text(errors='replace')[-6000:]}")
        await asyncio.gather(*(worker.stop(15.0) for worker in workers if worker.process is not None))
