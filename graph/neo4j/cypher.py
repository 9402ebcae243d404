"""Reads the `.cypher` files beside it: every statement has a name, a reason, its arguments and what it gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import LiteralString

_HEADER = re.compile(r"^// (name|why|args|gives):[ ]*(.*)$")
_MORE = re.compile(r"^//[ ]+(.*)$")
_FIELDS = ("name", "why", "args", "gives")


@dataclass(frozen=True, slots=True)
class Statement:
    """One named statement."""

    name: str
    why: str
    args: str
    gives: str
    text: LiteralString
    """As in the file, which ships with the package; values come in as `$arguments` only."""


@cache
def statements(file: str) -> Mapping[str, Statement]:
    """All statements of `queries/<file>.cypher` by name, in the file's order. Raises ValueError for a header that is not whole."""
    source = files(__package__).joinpath("queries", f"{file}.cypher").read_text(encoding="utf-8")
    parts = re.split(r"^(?=// name:)", source, flags=re.MULTILINE)
    found = [_parse(file, part) for part in parts if part.startswith("// name:")]
    if len({one.name for one in found}) != len(found):
        raise ValueError(f"{file}.cypher has two statements of one name")
    return MappingProxyType({one.name: one for one in found})


def statement(file: str, name: str) -> Statement:
    """One statement of a file."""
    return statements(file)[name]


def query_files() -> tuple[str, ...]:
    """The names of all query files, sorted."""
    folder = files(__package__).joinpath("queries")
    return tuple(
        sorted(entry.name.removesuffix(".cypher") for entry in folder.iterdir() if entry.name.endswith(".cypher"))
    )


def _parse(file: str, part: str) -> Statement:
    header: dict[str, str] = {}
    body: list[str] = []
    last = ""
    for line in part.splitlines():
        if not body and (match := _HEADER.match(line)):
            last = match[1]
            header[last] = match[2]
        elif not body and last and (match := _MORE.match(line)):
            header[last] += " " + match[1]
        else:
            body.append(line)
    text = "\n".join(body).strip().removesuffix(";")
    if tuple(header) != _FIELDS or not text:
        raise ValueError(
            f"{file}.cypher: {header.get('name', '?')} needs {', '.join(_FIELDS)}, in this order, and a statement"
        )
    return Statement(**header, text=text)
