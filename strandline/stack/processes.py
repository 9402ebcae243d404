"""Detached processes that outlive the command that started them, and never a signal to a stranger.

A pid alone is no identity: the system uses it again. So a process is known by its pid and its birth (boot and start tick), and a signal goes through
a handle that was opened before the birth was checked.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from strandline.stack.files import read_json

_POLL_SECONDS = 0.05
_PROC = Path("/proc")


@dataclass(frozen=True)
class ServerProcess:
    """A process we started. `birth` tells it from any later owner of the same pid."""

    pid: int
    birth: str

    @classmethod
    def read(cls, path: Path) -> ServerProcess | None:
        """The process a pid file names, alive or not; None without a file."""
        found = read_json(path)
        return None if found is None else cls(int(found["pid"]), str(found["birth"]))


def spawn(command: Sequence[str], *, environment: Mapping[str, str], log: Path) -> ServerProcess:
    """Start `command` in a session of its own, output appended to `log`, with exactly this environment."""
    write = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    # posix_spawn rather than Popen: the child shall live on, and a Popen that is dropped while it lives warns.
    pid = os.posix_spawn(
        command[0],
        list(command),
        dict(environment),
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(log), write, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )
    return ServerProcess(pid, _birth(pid) or "gone")


def alive(process: ServerProcess) -> bool:
    """Whether this very process runs. A dead child of ours is reaped by the way."""
    with suppress(ChildProcessError):
        os.waitpid(process.pid, os.WNOHANG)
    return _birth(process.pid) == process.birth


def send(process: ServerProcess, number: signal.Signals) -> None:
    """Signal this very process; nothing happens if it is gone."""
    if not hasattr(os, "pidfd_open"):
        if alive(process):
            os.kill(process.pid, number)
        return
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(process.pid)
        try:
            if alive(process):
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)


def wait_gone(processes: Iterable[ServerProcess], within: timedelta) -> list[ServerProcess]:
    """Wait until all are gone; those still there at the deadline are returned."""
    deadline = time.monotonic() + within.total_seconds()
    left = [process for process in processes if alive(process)]
    while left and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        left = [process for process in left if alive(process)]
    return left


def memory_bytes(process: ServerProcess) -> int:
    """Resident memory; 0 if it is gone."""
    if not alive(process):
        return 0
    import psutil  # Not at the top: it comes with the extra, and every command imports this module.

    try:
        return int(psutil.Process(process.pid).memory_info().rss)
    except psutil.Error:
        return 0


def _birth(pid: int) -> str | None:
    """None if no such process runs; a dead one that waits for its parent does not run."""
    if not _PROC.joinpath("self").exists():
        return _birth_elsewhere(pid)
    try:
        # The command's name stands in parentheses and may contain anything; after it come state (3rd field), …, number of threads (20th),
        # …, start time in ticks since boot (22nd).
        fields = _PROC.joinpath(str(pid), "stat").read_text().rpartition(")")[2].split()
        boot = _PROC.joinpath("sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The first thread of a killed process may be dead while others still hold its files and ports.
    dead = fields[0] in "ZX" and int(fields[17]) <= 1
    return None if dead else f"{boot}/{fields[19]}"


def _birth_elsewhere(pid: int) -> str | None:
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.Error:
        return None
