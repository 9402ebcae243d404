"""A stack is a folder: `state.json` says how it runs and on which ports, `neo4j.password` holds its one secret."""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from strandline.stack import ports
from strandline.stack.errors import StackError
from strandline.stack.files import read_json, write_private
from strandline.stack.services import SERVICES

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


def password(folder: Path) -> str:
    """The password of Neo4j's user, made on first use: 32 characters that need no quoting anywhere."""
    file = folder / "neo4j.password"
    if not file.exists():
        write_private(file, secrets.token_hex(16) + "\n")
    return file.read_text(encoding="utf-8").strip()


def choose_ports(*, standard: bool, published_only: bool = False, taken: Collection[int] = ()) -> dict[str, dict[str, int]]:
    """A free port for each one in SERVICES; the standard ones where wanted and free."""
    chosen: dict[str, dict[str, int]] = {}
    used = set(taken)
    for service in SERVICES.values():
        chosen[service.name] = {}
        for name, port in service.ports.items():
            if port.published or not published_only:
                number = ports.choose(port.standard, prefer_standard=standard, taken=used)
                chosen[service.name][name] = number
                used.add(number)
    return chosen
