"""Folders, locks and small files of the stack."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def default_folder() -> Path:
    """Where a person's own stack lives: outside every checkout, so that deleting one loses no memory."""
    return Path.home() / ".local" / "share" / "strandline" / "stack"


def default_cache() -> Path:
    """Where servers are kept once obtained; shared by all stacks of this account, safe to delete."""
    return Path.home() / ".cache" / "strandline"


@contextmanager
def locked(path: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold an exclusive lock on `path` between processes and threads; `waiting` is called once if another one has it.

    The system drops it when the process ends, however it ends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write_private(path: Path, text: str) -> None:
    """Replace the file at once, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f"{path.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in the file; None if there is no such file."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    value: dict[str, Any] = json.loads(text)
    return value


def tail(path: Path, lines: int, start: int = 0) -> str:
    """The last lines of a log from byte `start` on, at most 64 KiB of it; "" if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(max(start, path.stat().st_size - 65536))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
