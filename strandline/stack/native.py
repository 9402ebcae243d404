"""NativeStack: the real servers as plain processes, without Docker.

Everything of a stack is in its folder, so that several live side by side:

    state.json        ports            neo4j.password, weaviate.key   0600
    lock              one command at a time
    <service>/data    what must last   <service>/conf   rendered anew at each start
    <service>/log     the server's output (one older file is kept)
    <service>/pid     the process and its birth
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path

from strandline.stack import ports as port_numbers
from strandline.stack import processes, render, state, toolchains
from strandline.stack.addresses import Addresses
from strandline.stack.errors import StackError
from strandline.stack.files import default_cache, locked, tail, write_private
from strandline.stack.health import PROBES
from strandline.stack.installs import install
from strandline.stack.processes import ServerProcess
from strandline.stack.services import SERVICES, Jars, Service

Progress = Callable[[str, str], None]
"""Takes a service's name ("" for the stack) and one line. May be called from several threads."""

_PROBE_SECONDS = 0.1
_KILL_WAIT = timedelta(seconds=10)
_LOG_BYTES = 20_000_000
_TAIL_LINES = 15


def silent(service: str, line: str) -> None:
    """A Progress that says nothing."""


@dataclass(frozen=True)
class ServiceStatus:
    """One service as it is now. `running`: the process lives; `healthy`: it answers a client."""

    name: str
    version: str
    running: bool
    healthy: bool
    address: str
    pid: int | None
    memory_bytes: int


class NativeStack:
    """The stack in `folder`. Blocking: call from a thread in async code.

    `standard_ports`: take 9092, 7687, 8080 and 50051 where they are free; else any free ports. Chosen once, then kept.
    """

    def __init__(
        self, folder: Path, *, cache: Path | None = None, standard_ports: bool = False, progress: Progress = silent
    ) -> None:
        self.folder = folder.absolute()
        self._cache = cache or default_cache()
        self._standard_ports = standard_ports
        self._progress = progress
        self._stopped = threading.Event()

    def up(self, services: Collection[str] = tuple(SERVICES)) -> Addresses:
        """Start what does not run yet, side by side, each once it is obtained; returns when all are healthy.

        Raises StackError as soon as one fails; what runs by then keeps running, and another `up` goes on from there.
        """
        unknown = set(services) - set(SERVICES)
        if unknown:
            raise StackError(f"No service is called {', '.join(sorted(unknown))}: there are {', '.join(SERVICES)}.")
        self._stopped.clear()
        with self._lock():
            self._prepare_folder()
            with ThreadPoolExecutor(len(services) or 1, thread_name_prefix="stack") as pool:
                starts = [pool.submit(self._ensure_running, SERVICES[name]) for name in services]
                try:
                    done, _ = wait(starts, return_when=FIRST_EXCEPTION)
                finally:
                    self._stopped.set()
                for start in done:
                    start.result()
            return self.addresses

    def start(self, name: str) -> None:
        """Start one service on its ports with its data and wait until it is healthy; nothing if it runs."""
        self.up((name,))

    def kill(self, name: str) -> None:
        """SIGKILL one service and wait until it is gone; its data and ports stay. Nothing if it is dead."""
        process = self.process(name)
        if process is not None:
            processes.send(process, signal.SIGKILL)
            if processes.wait_gone([process], _KILL_WAIT):
                raise StackError(f"{name} (process {process.pid}) is still there {_KILL_WAIT.seconds} s after SIGKILL.")

    def stop(self, services: Collection[str] = tuple(SERVICES)) -> None:
        """End services: SIGTERM, then SIGKILL after the grace of the table. Data and ports stay."""
        with self._lock():
            running = {name: process for name in services if (process := self.process(name)) is not None}
            for name, process in running.items():
                self._progress(name, "stopping")
                processes.send(process, signal.SIGTERM)
            grace = max((SERVICES[name].stop_grace for name in running), default=timedelta(0))
            late = processes.wait_gone(running.values(), grace)
            for name, process in running.items():
                if process in late:
                    self._progress(name, f"did not stop within {grace.seconds} s: killing it")
                    self.kill(name)
                self._home(name).joinpath("pid").unlink(missing_ok=True)

    def delete(self) -> None:
        """Stop everything and delete the folder with all data."""
        if self.folder.exists():
            self.stop()
            shutil.rmtree(self.folder)

    @property
    def addresses(self) -> Addresses:
        """Where it is, running or not; raises StackError if the folder holds no native stack."""
        return Addresses.local(self._state().ports, state.all_secrets(self.folder))

    def process(self, name: str) -> ServerProcess | None:
        """The living process of a service; None if it does not run."""
        process = ServerProcess.read(self._home(name) / "pid")
        return process if process is not None and processes.alive(process) else None

    def status(self) -> list[ServiceStatus]:
        """All services, in the order of the table; raises StackError if the folder holds no native stack."""
        return [self._status(service) for service in SERVICES.values()]

    def log(self, name: str) -> Path:
        """The file with the service's output."""
        return self._home(name) / "log"

    def log_tail(self, name: str, lines: int) -> str:
        """The last lines of it; "" if it never ran."""
        return tail(self.log(name), lines)

    def _status(self, service: Service) -> ServiceStatus:
        process = self.process(service.name)
        published = [
            str(self._state().ports[service.name][name]) for name, port in service.ports.items() if port.published
        ]
        return ServiceStatus(
            name=service.name,
            version=service.version,
            running=process is not None,
            healthy=process is not None and PROBES[service.name](self.addresses),
            address="127.0.0.1:" + ",".join(published),
            pid=process.pid if process else None,
            memory_bytes=processes.memory_bytes(process) if process else 0,
        )

    def _home(self, name: str) -> Path:
        return self.folder / name

    def _lock(self) -> AbstractContextManager[None]:
        return locked(self.folder / "lock", lambda: self._progress("", "another command works on this stack; waiting"))

    def _state(self) -> state.State:
        found = state.load(self.folder)
        if found is None or found.mode != "native":
            raise StackError(f"There is no native stack in {self.folder}. `strandline stack up --native` makes one.")
        return found

    def _prepare_folder(self) -> None:
        self.folder.chmod(0o700)
        found = state.load(self.folder)
        if found is None:
            found = state.State("native", state.choose_ports(standard=self._standard_ports))
        elif not any(self.process(name) for name in SERVICES):
            found = self._moved_off_taken_ports(found)
        state.save(self.folder, found)
        self._state()

    def _moved_off_taken_ports(self, found: state.State) -> state.State:
        """A stack that stands still has no clients, so it can give way where another program has taken a port."""
        numbers = {name: dict(ports) for name, ports in found.ports.items()}
        for name, ports in numbers.items():
            for port, number in ports.items():
                if not port_numbers.is_free(number):
                    taken = {used for others in numbers.values() for used in others.values()}
                    ports[port] = port_numbers.choose(number, prefer_standard=False, taken=taken)
                    self._progress(
                        name, f"port {number} is taken by {port_numbers.owner(number)}: moving {port} to {ports[port]}"
                    )
        return replace(found, ports=numbers)

    def _ensure_running(self, service: Service) -> None:
        process = self.process(service.name)
        log_start = 0
        if process is None:
            files = install(service, self._cache, lambda line: self._progress(service.name, line), self._stopped)
            self._check_ports(service)
            command, environment = self._command(service, files)
            log_start = self._rotate_log(service.name)
            process = self._launch(service, command, environment)
        self._wait_healthy(service, process, log_start)

    def _check_ports(self, service: Service) -> None:
        for name, number in self._state().ports[service.name].items():
            if not port_numbers.is_free(number):
                raise StackError(
                    f"{service.title} cannot start: its {name} port {number} is taken by {port_numbers.owner(number)}. "
                    "Stop that program and run it again; or stop this stack, and its next start takes other ports."
                )

    def _rotate_log(self, name: str) -> int:
        """Put a long log aside; gives the byte at which the next lines will stand."""
        log = self.log(name)
        if log.exists() and log.stat().st_size > _LOG_BYTES:
            log.replace(log.with_name("log.1"))
        return log.stat().st_size if log.exists() else 0

    def _launch(self, service: Service, command: list[str], environment: dict[str, str]) -> ServerProcess:
        self._progress(service.name, f"starting version {service.version}")
        process = processes.spawn(command, environment=environment, log=self.log(service.name))
        write_private(self._home(service.name) / "pid", json.dumps(asdict(process)) + "\n")
        return process

    def _command(self, service: Service, files: Path) -> tuple[list[str], dict[str, str]]:
        """The command and its whole environment, after everything it reads has been written."""
        home = self._home(service.name)
        values = {name: str(number) for name, number in self._state().ports[service.name].items()}
        values |= {
            "home": str(home),
            "data": str(home / "data"),
            "conf": str(home / "conf"),
            "new_id": state.new_cluster_id(),
        }
        values["secret"] = state.secret(self.folder, service)
        for folder in ("data", "conf"):
            (home / folder).mkdir(parents=True, exist_ok=True)
        settings = render.native_settings(service, values)
        environment = {"PATH": os.defpath, "HOME": str(home)}
        recipe = service.install
        arguments = [template.format_map(values) for template in recipe.arguments]
        if not isinstance(recipe, Jars):
            return [str(files / Path(recipe.module).name), *arguments], environment | settings
        for name, text in {**recipe.files, recipe.config_file: render.properties(settings)}.items():
            (home / "conf" / name).write_text(text, encoding="utf-8")
        java = [toolchains.java(), *(flag.format_map(values) for flag in recipe.jvm), "-cp", f"{files}/*"]
        self._first_start(service, recipe, java, environment, values)
        return [*java, recipe.main, *arguments], environment

    def _first_start(
        self, service: Service, recipe: Jars, java: list[str], environment: dict[str, str], values: dict[str, str]
    ) -> None:
        """What an empty data folder needs before the server may see it."""
        data = self._home(service.name) / "data"
        if service.name == "neo4j" and not (data / "databases").exists():
            (data / "dbms").mkdir(exist_ok=True)
            write_private(data / "dbms" / "auth.ini", render.neo4j_auth_file(values["secret"]))
        if recipe.format_main and not (data / recipe.format_leaves).exists():
            arguments = [template.format_map(values) for template in recipe.format_arguments]
            done = subprocess.run(
                [*java, recipe.format_main, *arguments], env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode != 0:
                last = "\n".join((done.stdout + done.stderr).splitlines()[-_TAIL_LINES:])
                raise StackError(
                    f"{service.title}'s data folder {data} could not be formatted:\n{last}\nDelete it if it is not needed, and run it again."
                )

    def _wait_healthy(self, service: Service, process: ServerProcess, log_start: int) -> None:
        deadline = time.monotonic() + service.start_timeout.total_seconds()
        probe, addresses = PROBES[service.name], self.addresses
        while not probe(addresses):
            if not processes.alive(process):
                raise StackError(self._obituary(service, "ended while it was starting", log_start))
            if time.monotonic() > deadline:
                what = f"does not answer after {service.start_timeout.seconds} s"
                raise StackError(self._obituary(service, what, log_start))
            if self._stopped.wait(_PROBE_SECONDS):
                raise StackError(f"{service.title} was not waited for, because another service failed.")
        self._progress(service.name, f"ready ({process.pid})")

    def _obituary(self, service: Service, what: str, log_start: int) -> str:
        log = self.log(service.name)
        return (
            f"{service.title} {service.version} {what}. The last lines of {log}:\n{tail(log, _TAIL_LINES, log_start)}\n"
            f"Mend what they say and run `strandline stack up` again; `strandline stack logs {service.name}` shows more."
        )
