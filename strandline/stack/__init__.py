"""The services Strandline needs, the real ones: started natively or by Docker, from one table.

A stack is a folder; without one given it is the person's own, outside every checkout. All calls block; in async code run them in a thread
(`await asyncio.to_thread(stack.up, folder)`).

    addresses = stack.up(Path("/tmp/mine"), progress=lambda service, line: print(service, line))
    stack.status(Path("/tmp/mine"))
    stack.down(Path("/tmp/mine"))
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal

from strandline.stack import state
from strandline.stack.addresses import Addresses
from strandline.stack.docker import DockerStack, engine_answers
from strandline.stack.errors import StackError
from strandline.stack.files import default_folder
from strandline.stack.native import NativeStack, Progress, ServiceStatus, silent
from strandline.stack.services import SERVICES

__all__ = [
    "SERVICES",
    "Addresses",
    "DockerStack",
    "Mode",
    "NativeStack",
    "Progress",
    "ServiceStatus",
    "StackError",
    "default_folder",
    "down",
    "env",
    "log_tail",
    "open_stack",
    "status",
    "up",
]

Mode = Literal["auto", "native", "docker"]


def up(
    folder: Path | None = None,
    mode: Mode = "auto",
    services: Collection[str] = tuple(SERVICES),
    progress: Progress = silent,
) -> Addresses:
    """Start what does not run yet; returns when all `services` are healthy. Same ports and data each time.

    `auto` keeps to what the folder was made with; a new one takes Docker if an engine answers, else native. Raises StackError.
    """
    return open_stack(folder, mode, progress).up(services)


def down(folder: Path | None = None, progress: Progress = silent) -> None:
    """Stop the stack's services; data and ports stay. Raises StackError if the folder holds no stack."""
    _existing(folder, progress).stop()


def status(folder: Path | None = None) -> list[ServiceStatus]:
    """Each service as it is now; raises StackError if the folder holds no stack."""
    return _existing(folder).status()


def env(folder: Path | None = None) -> dict[str, str]:
    """The STRANDLINE_ variables that lead to the stack, secrets included; raises StackError if the folder holds no stack."""
    return _existing(folder).addresses.as_environment()


def log_tail(name: str, lines: int, folder: Path | None = None) -> str:
    """The last lines of a service's output; raises StackError if the folder holds no stack."""
    return _existing(folder).log_tail(name, lines)


def open_stack(
    folder: Path | None = None, mode: Mode = "auto", progress: Progress = silent
) -> NativeStack | DockerStack:
    """The stack of a folder, started or not; raises StackError if it was made the other way.

    Only the person's own stack takes the standard ports, so no other can be mistaken for it.
    """
    where = (folder or default_folder()).absolute()
    own = where == default_folder()
    found = state.load(where)
    if found is not None and mode not in ("auto", found.mode):
        raise StackError(f"The stack in {where} was made with --{found.mode}. Use that, or another --folder.")
    chosen = found.mode if found is not None else mode
    if chosen == "auto":
        chosen = "docker" if engine_answers() else "native"
    if chosen == "docker":
        return DockerStack(where, standard_ports=own, progress=progress)
    return NativeStack(where, standard_ports=own, progress=progress)


def _existing(folder: Path | None, progress: Progress = silent) -> NativeStack | DockerStack:
    where = folder or default_folder()
    if state.load(where) is None:
        raise StackError(f"There is no stack in {where}. `strandline stack up` makes one.")
    return open_stack(where, progress=progress)
