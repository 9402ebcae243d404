"""DockerStack: the same services as containers, by `docker compose` and a file rendered into the stack's folder.

Checked without an engine only: the file against the Compose schema, the commands against a stand-in for `docker`.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import time
from collections.abc import Collection
from pathlib import Path

from strandline.stack import compose, state
from strandline.stack.addresses import Addresses
from strandline.stack.errors import StackError
from strandline.stack.files import write_private
from strandline.stack.health import PROBES
from strandline.stack.native import Progress, ServiceStatus, silent
from strandline.stack.services import SERVICES

_ANSWER_SECONDS = 10
_PROBE_SECONDS = 0.2
_TAIL_LINES = 15


def engine_answers(docker: str = "docker") -> bool:
    """Whether there is a Docker client with compose, and an engine behind it."""
    if shutil.which(docker) is None:
        return False
    for command in (("info",), ("compose", "version")):
        try:
            done = subprocess.run([docker, *command], capture_output=True, timeout=_ANSWER_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return False
        if done.returncode != 0:
            return False
    return True


class DockerStack:
    """The stack in `folder`, run by Docker. Its project is named after the folder, so several live side by side. Blocking."""

    def __init__(
        self, folder: Path, *, standard_ports: bool = False, progress: Progress = silent, docker: str = "docker"
    ) -> None:
        self.folder = folder.absolute()
        self._standard_ports = standard_ports
        self._progress = progress
        self._docker = docker
        self.project = "strandline-" + hashlib.sha256(str(self.folder).encode()).hexdigest()[:10]

    def up(self, services: Collection[str] = tuple(SERVICES)) -> Addresses:
        """Start what does not run yet and return when all are healthy, also as seen from outside; raises StackError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o700)
        if state.load(self.folder) is None:
            state.save(self.folder, state.State("docker", state.choose_ports(standard=self._standard_ports)))
        self._write_compose()
        self._progress("", "starting containers; the first time their images are fetched")
        self._compose("up", "--detach", "--wait", *services)
        for name in services:
            self._wait_healthy(name)
        return self.addresses

    def stop(self, services: Collection[str] = tuple(SERVICES)) -> None:
        """Stop and remove the containers of `services`. Data (named volumes) and ports stay."""
        self._state()
        self._progress("", "stopping containers")
        self._compose("rm", "--stop", "--force", *services)

    def delete(self) -> None:
        """Stop everything and delete the volumes and the folder with all data."""
        if self.compose_file.exists():
            self._compose("down", "--volumes")
        if self.folder.exists():
            shutil.rmtree(self.folder)

    @property
    def addresses(self) -> Addresses:
        """Where it is, running or not; raises StackError if the folder holds no Docker stack."""
        return Addresses.local(self._state().ports, state.all_secrets(self.folder))

    def status(self) -> list[ServiceStatus]:
        """All services, in the order of the table. Memory and process are the engine's affair: 0 and None."""
        found = self._state()
        running = set(self._compose("ps", "--services", "--status", "running").split())
        return [
            ServiceStatus(
                name=name,
                version=service.version,
                running=name in running,
                healthy=name in running and PROBES[name](self.addresses),
                address="127.0.0.1:"
                + ",".join(str(found.ports[name][port]) for port, row in service.ports.items() if row.published),
                pid=None,
                memory_bytes=0,
            )
            for name, service in SERVICES.items()
        ]

    def log_tail(self, name: str, lines: int) -> str:
        """The last lines of a container's output."""
        return self._compose("logs", "--no-color", "--no-log-prefix", "--tail", str(lines), name)

    @property
    def compose_file(self) -> Path:
        return self.folder / "docker-compose.yml"

    def _state(self) -> state.State:
        found = state.load(self.folder)
        if found is None or found.mode != "docker":
            raise StackError(f"There is no Docker stack in {self.folder}. `strandline stack up --docker` makes one.")
        return found

    def _write_compose(self) -> None:
        found = self._state()
        file = self.folder / "cluster.id"
        if not file.exists():
            write_private(file, state.new_cluster_id() + "\n")
        secrets = state.all_secrets(self.folder)
        values = {
            name: {port: str(number) for port, number in found.ports[name].items()}
            | {"secret": secrets[name], "new_id": file.read_text(encoding="utf-8").strip()}
            for name in SERVICES
        }
        write_private(self.compose_file, compose.yaml(compose.document(values)))

    def _compose(self, *arguments: str) -> str:
        command = [
            self._docker,
            "compose",
            "--project-name",
            self.project,
            "--file",
            str(self.compose_file),
            *arguments,
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise StackError(f"`{self._docker}` cannot be run: {error}. Install Docker, or use --native.") from error
        if done.returncode != 0:
            last = "\n".join((done.stdout + done.stderr).splitlines()[-_TAIL_LINES:])
            raise StackError(
                f"`docker compose {arguments[0]}` failed ({done.returncode}). Its last lines:\n{last}\nMend it and run it again, or use --native."
            )
        return done.stdout

    def _wait_healthy(self, name: str) -> None:
        service = SERVICES[name]
        deadline = time.monotonic() + service.start_timeout.total_seconds()
        while not PROBES[name](self.addresses):
            if time.monotonic() > deadline:
                raise StackError(
                    f"{service.title} runs in its container but does not answer on this machine after {service.start_timeout.seconds} s. Its last lines:\n"
                    f"{self.log_tail(name, _TAIL_LINES)}\nCheck Docker's port forwarding, or use --native."
                )
            time.sleep(_PROBE_SECONDS)
        self._progress(name, "ready")
