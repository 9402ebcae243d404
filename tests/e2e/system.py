"""A whole Strandline of a test's own on the real services: `strandline up` as a process, with a prefix and a user that nobody else has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from strandline.stack import Addresses, ports

BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Place:
    """Where commands run: in `folder`, with `environment`, against `url`."""

    folder: Path
    environment: Mapping[str, str]
    url: str

    def run(self, command: str, *, timeout: float = 120) -> subprocess.CompletedProcess[str]:
        """A command as a person types it."""
        return subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def free_port(self) -> Mapping[str, str]:
        """The environment for another server beside the one that runs."""
        return {**self.environment, "STRANDLINE_API__PORT": str(ports.choose(0, prefer_standard=False, taken=()))}


def own_place(addresses: Addresses, folder: Path) -> Place:
    """Settings that keep a test apart from all others on the same services. Local models: nothing leaves the machine."""
    mark = uuid4().hex[:10]
    port = ports.choose(0, prefer_standard=False, taken=())
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("STRANDLINE_")}
    environment = {
        **inherited,
        **addresses.as_environment(),
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "HOME": str(folder),
        "STRANDLINE_KAFKA__PREFIX": f"t{mark}.",
        "STRANDLINE_WEAVIATE__PREFIX": f"T{mark}",
        "STRANDLINE_MODEL__PROVIDER": "local",
        "STRANDLINE_EMBEDDER__PROVIDER": "local",
        "STRANDLINE_API__PORT": str(port),
        "STRANDLINE_URL": f"http://127.0.0.1:{port}",
        "STRANDLINE_USER": f"user-{mark}",
    }
    return Place(folder, environment, f"http://127.0.0.1:{port}")


def interruptible() -> None:
    """A shell that runs the tests in the background has them, and all they start, ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Process:
    """A command that runs on until it is told to stop; its output is read all the time."""

    def __init__(self, command: str, place: Place, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=place.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=interruptible,
        )
        self.lines: deque[str] = deque(maxlen=2000)
        self._said = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._said:
                self.lines.append(line.rstrip())
                self._said.notify_all()
        with self._said:
            self.lines.append("<ended>")
            self._said.notify_all()

    def until_it_says(self, words: str, *, timeout: float = 180) -> str:
        """The first line with these words; AssertionError with its last lines if it ends or is late."""
        with self._said:
            self._said.wait_for(lambda: any(words in line or line == "<ended>" for line in self.lines), timeout)
            found = next((line for line in self.lines if words in line), None)
        assert found is not None, f"it never said {words!r}:\n" + "\n".join(list(self.lines)[-40:])
        return found

    def stop(self, number: signal.Signals = signal.SIGTERM, *, timeout: float = 90) -> int:
        """Signals it and waits; the exit code."""
        if self._process.poll() is None:
            self._process.send_signal(number)
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise
        finally:
            self._reader.join(5)
            assert self._process.stdout is not None
            self._process.stdout.close()
        return code


@contextmanager
def running(command: str, place: Place, environment: Mapping[str, str] | None = None) -> Iterator[Process]:
    """The command while the block is; SIGTERM at its end."""
    process = Process(command, place, place.environment if environment is None else environment)
    try:
        yield process
    finally:
        process.stop()
