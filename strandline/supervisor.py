"""Supervisor: `strandline up`. Server and workers as child processes, started again when they end, their output told with a name before it.

    services (strandline/stack) ─► topics ─► serve, worker 1, worker 2, …   until a signal ─► children end ─► services stay, or stop

Children have sessions of their own, so that Ctrl-C reaches only the supervisor, which ends them in order; on Linux they also end when it is killed.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import aiohttp

from strandline.settings import Settings, child_environment
from strandline.stack import ports
from topics.errors import StrandlineError

Say = Callable[[str, str], None]
"""Takes a child's name ("" for the supervisor) and one line."""

_BACKOFF = (timedelta(seconds=1), timedelta(seconds=30))
"""First pause before a child is started again, doubled each time, and the longest."""
_STEADY = timedelta(seconds=60)
"""A child that ran so long is no repeated failure any more."""
_HOPELESS = 3
"""A child that ends so often before it was ever ready will not become ready."""
_START_DEADLINE = timedelta(minutes=3)
_PROBE_SECONDS = 0.25
_KILL_AFTER = timedelta(seconds=5)
"""Beyond a worker's own grace."""
_LAST_WORDS = timedelta(seconds=2)
"""How long a child's output is still read after its end."""
_LAST_LINES = 15
_LINE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Plan:
    """What runs. `environment` goes to the children beside the supervisor's own."""

    settings: Settings
    workers: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Child:
    """One process that is to run."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    ready_url: str
    say: Say
    was_ready: bool = False
    process: asyncio.subprocess.Process | None = None
    ending: asyncio.Event = field(default_factory=asyncio.Event)
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=_LAST_LINES))

    async def keep_running(self) -> None:
        """Until it was told to end. Raises StrandlineError for a child that ends again and again before it was ready."""
        pause, vain = _BACKOFF[0], 0
        while not self.ending.is_set():
            began = time.monotonic()
            code = await self._run_once()
            if self.ending.is_set():
                return
            if self.was_ready:
                vain = 0
            elif (vain := vain + 1) >= _HOPELESS:
                last = "\n".join(self.last_lines)
                raise StrandlineError(
                    f"{self.name} ended {vain} times before it was ready, the last time with {code}:\n{last}"
                )
            if time.monotonic() - began > _STEADY.total_seconds():
                pause = _BACKOFF[0]
            self.say(self.name, f"ended with {code}; starting it again in {pause.total_seconds():g} s")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ending.wait(), pause.total_seconds())
            pause = min(2 * pause, _BACKOFF[1])

    async def _run_once(self) -> int:
        self.process = await asyncio.create_subprocess_exec(
            *self.command,
            env=dict(self.environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_ends_with_parent if sys.platform == "linux" else None,
        )
        if self.ending.is_set():  # while it was being started
            self.process.terminate()
        assert self.process.stdout is not None
        telling = asyncio.create_task(self._tell(self.process.stdout))
        try:
            code = await self.process.wait()
            # A process of the child's own may outlive it and hold the pipe open.
            await asyncio.wait({telling}, timeout=_LAST_WORDS.total_seconds())
        finally:
            telling.cancel()
        return code

    async def _tell(self, output: asyncio.StreamReader) -> None:
        rest = b""
        while chunk := await output.read(_LINE_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _LINE_BYTES:
                lines, rest = [*lines, rest], b""
            for line in lines:
                self._tell_line(line)
        if rest:
            self._tell_line(rest)

    def _tell_line(self, raw: bytes) -> None:
        line = raw.decode(errors="replace").rstrip()
        self.last_lines.append(line)
        self.say(self.name, line)

    async def until_ready(self, session: aiohttp.ClientSession) -> None:
        """Asks `ready_url` until it says yes."""
        while True:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
                async with session.get(self.ready_url, timeout=aiohttp.ClientTimeout(total=5)) as answer:
                    if answer.status == 200:
                        self.was_ready = True
                        self.say(self.name, "ready")
                        return
            await asyncio.sleep(_PROBE_SECONDS)

    async def end(self, within: timedelta) -> None:
        """SIGTERM, and SIGKILL for one that is still there after `within`. It is not started again."""
        self.ending.set()
        process = self.process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), within.total_seconds())
        except TimeoutError:
            self.say(self.name, f"still there after {within.total_seconds():g} s: killing it")
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


def _ends_with_parent() -> None:
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


@dataclass(slots=True)
class System:
    """What runs now."""

    url: str
    children: Sequence[Child]
    failed: asyncio.Task[None]
    """Ends, with an error, when a child is beyond help."""


@contextlib.asynccontextmanager
async def running(plan: Plan, say: Say) -> AsyncIterator[System]:
    """Server and workers, all ready when it is entered, all ended when it is left. The services must run.

    Raises StrandlineError if they do not get ready.
    """
    await _ensure_topics(plan, say)
    children = _children(plan, say)
    async with kept(children, grace=plan.settings.worker.grace + _KILL_AFTER) as failed:
        yield System(children[0].ready_url.removesuffix("/ready"), children, failed)


@contextlib.asynccontextmanager
async def kept(children: Sequence[Child], *, grace: timedelta) -> AsyncIterator[asyncio.Task[None]]:
    """Keeps children running while the block is; all are ready when it is entered. Gives what ends with an error when one is beyond help."""
    keepers = [asyncio.create_task(child.keep_running(), name=f"keep {child.name}") for child in children]
    failed = asyncio.create_task(_first_failure(keepers))
    try:
        await _all_ready(children, failed)
        yield failed
    finally:
        await asyncio.gather(*(child.end(grace) for child in children))
        failed.cancel()
        await asyncio.gather(*keepers, failed, return_exceptions=True)


async def _first_failure(keepers: Sequence[asyncio.Task[None]]) -> None:
    done, _ = await asyncio.wait(keepers, return_when=asyncio.FIRST_EXCEPTION)
    for task in done:
        task.result()


async def _all_ready(children: Sequence[Child], failed: asyncio.Task[None]) -> None:
    async with aiohttp.ClientSession() as session:
        asking = [asyncio.create_task(child.until_ready(session)) for child in children]
        all_ready = asyncio.create_task(asyncio.wait(asking))
        try:
            await asyncio.wait(
                {all_ready, failed}, timeout=_START_DEADLINE.total_seconds(), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            for task in (all_ready, *asking):
                task.cancel()
            await asyncio.gather(all_ready, *asking, return_exceptions=True)
    if failed.done():
        failed.result()
    late = ", ".join(child.name for child in children if not child.was_ready)
    if late:
        raise StrandlineError(f"{late} not ready after {_START_DEADLINE.seconds} s; what it said last is above")


async def _ensure_topics(plan: Plan, say: Say) -> None:
    from topics.kafka.admin import ensure_topics
    from topics.registry import TOPICS

    kafka = plan.settings.kafka
    made = await ensure_topics(kafka.bootstrap, TOPICS, replication=kafka.replication, prefix=kafka.prefix)
    if made:
        say("", f"topics created: {', '.join(made)}")


def _children(plan: Plan, say: Say) -> list[Child]:
    settings = plan.settings
    taken: set[int] = set()

    def free(preferred: int) -> int:
        number = preferred or ports.choose(0, prefer_standard=False, taken=taken)
        if not ports.is_free(number):
            raise StrandlineError(
                f"port {number} is taken by {ports.owner(number)}: end that, or set STRANDLINE_API__PORT"
            )
        taken.add(number)
        return number

    def child(name: str, arguments: Sequence[str], ready: str, **changes: str) -> Child:
        environment = child_environment({**plan.environment, **changes})
        # -P: a folder `agents` or `topics` where the command happens to be run must not be taken for ours.
        return Child(name, [sys.executable, "-P", "-m", "strandline", *arguments], environment, ready, say)

    port = free(settings.api.port)
    host = _host(plan)
    found = [child("serve", ["serve"], f"http://{host}:{port}/ready", STRANDLINE_API__PORT=str(port))]
    for number in range(1, plan.workers + 1):
        port = free(settings.worker.health_port if plan.workers == 1 else 0)
        ready = f"http://{settings.worker.health_host}:{port}/ready"
        found.append(child(f"worker {number}", ["worker"], ready, STRANDLINE_WORKER__HEALTH_PORT=str(port)))
    return found


def _host(plan: Plan) -> str:
    """Where the server is reached from here."""
    host = plan.settings.api.host
    return "127.0.0.1" if host in ("0.0.0.0", "::") else host  # noqa: S104


async def supervise(plan: Plan, say: Say, started: Callable[[System], None]) -> None:
    """Runs until SIGINT or SIGTERM, also while it is starting. Raises StrandlineError when a child is beyond help."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    work = asyncio.ensure_future(_run(plan, say, started))
    waiting = asyncio.ensure_future(stopped.wait())
    await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not work.done():
        say("", "stopping server and workers")
        work.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await work


async def _run(plan: Plan, say: Say, started: Callable[[System], None]) -> None:
    async with running(plan, say) as system:
        started(system)
        await system.failed
