"""A stack is a folder: `state.json` says how it runs and on which ports; each secret has a file of its own."""

from __future__ import annotations

import base64
import json
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from strandline.stack import ports
from strandline.stack.errors import StackError
from strandline.stack.files import read_json, write_private
from strandline.stack.services import SERVICES, Service

Mode = Literal["native", "docker"]
Ports = Mapping[str, Mapping[str, int]]
"""By service, then by the port's name."""

_FORMAT = 1


@dataclass(frozen=True)
class State:
    """What must survive between two commands."""

    mode: Mode
    ports: Ports


def load(folder: Path) -> State | None:
    """The stack's state; None if the folder holds no stack; raises StackError if a newer release wrote it."""
    found = read_json(folder / "state.json")
    if found is None:
        return None
    if found["format"] != _FORMAT:
        raise StackError(f"{folder} was made by another release of Strandline: use that one, or another --folder.")
    return State(mode=found["mode"], ports=found["ports"])


def save(folder: Path, state: State) -> None:
    """Write the state; it is there whole or not at all."""
    write_private(folder / "state.json", json.dumps({"format": _FORMAT, **asdict(state)}, indent=2) + "\n")


def secret(folder: Path, service: Service) -> str:
    """The service's password or key, made on first use: 32 hexadecimal digits, which need no quoting anywhere. "" if it has none."""
    if not service.credential_file:
        return ""
    file = folder / service.credential_file
    if not file.exists():
        write_private(file, secrets.token_hex(16) + "\n")
    return file.read_text(encoding="utf-8").strip()


def all_secrets(folder: Path) -> dict[str, str]:
    """Every service's secret by its name."""
    return {name: secret(folder, service) for name, service in SERVICES.items()}


def new_cluster_id() -> str:
    """A random UUID as Kafka writes them: URL-safe base64. A leading dash would look like an option."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


def choose_ports(*, standard: bool) -> dict[str, dict[str, int]]:
    """A free port for each one in SERVICES; the standard ones where wanted and free."""
    chosen: dict[str, dict[str, int]] = {}
    used: set[int] = set()
    for service in SERVICES.values():
        chosen[service.name] = {}
        for name, port in service.ports.items():
            number = ports.choose(port.standard, prefer_standard=standard, taken=used)
            chosen[service.name][name] = number
            used.add(number)
    return chosen
