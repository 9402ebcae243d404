"""The settings as rows: what `strandline settings` shows, and what `docs/settings.md` and `.env.example` are written from."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from typing import Literal, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from strandline.settings import fields, load, named_values, stack_values, variable

MASK = "********"

_CREDENTIALS = re.compile(r"//[^/@\s]+@")
"""User and password inside an address."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One setting. Texts only, and none of them holds a secret."""

    name: str
    """The environment variable."""
    value: str
    """"" for an empty text and for none; a secret that is set is MASK."""
    origin: str
    """environment, .env, running stack, or default."""
    default: str
    accepts: str
    """What may be written, in words."""
    description: str


def setting_rows() -> Sequence[SettingRow]:
    """All settings with this process's values. Raises Refused as `load` does."""
    settings, named = load(), named_values()
    stack = stack_values(settings.stack_folder)
    return [_row(path, field, reduce(getattr, path, settings), _origin(path, named, stack)) for path, field in fields()]


def default_rows() -> Sequence[SettingRow]:
    """All settings as they are when nothing is set; reads nothing."""
    return [_row(path, field, field.default, "default") for path, field in fields()]


def _row(path: tuple[str, ...], field: FieldInfo, value: object, origin: str) -> SettingRow:
    return SettingRow(
        name=variable(*path),
        value=_text(value),
        origin=origin,
        default=_text(field.default),
        accepts=_accepts(field.annotation),
        description=field.description or "",
    )


def _origin(
    path: tuple[str, ...], named: Mapping[str, Mapping[str, str | None]], stack: Mapping[str, Mapping[str, str]]
) -> str:
    for origin, values in named.items():
        if variable(*path) in values:
            return origin
    section = stack.get(path[0], {})
    taken = any(variable(path[0], name) in values for name in section for values in named.values())
    return "running stack" if path[-1] in section and not taken else "default"


def _text(value: object) -> str:
    match value:
        case None:
            return ""
        case SecretStr():
            return MASK
        case timedelta():
            return f"{value.total_seconds():g}"
        case _:
            return _CREDENTIALS.sub(f"//{MASK}@", str(value))


def _accepts(annotation: object) -> str:
    options = get_args(annotation)
    if get_origin(annotation) is Literal:
        return ", ".join(map(str, options))
    names: dict[object, str] = {timedelta: "seconds", int: "whole number", SecretStr: "secret"}
    return next((names[kind] for kind in (annotation, *options) if kind in names), "text")


def settings_document() -> str:
    """`docs/settings.md`."""
    lines = [
        "# Settings",
        "",
        "Written by `make docs` from the table in `strandline/settings.py`. A value comes from the first of: the environment, `.env` in the",
        "working folder, the addresses of your own running stack (`strandline stack up`), the default. `strandline settings` shows which.",
        "A wrong value or a misspelt name refuses the start.",
        "",
        "| Variable | Default | Accepts | Meaning |",
        "|---|---|---|---|",
    ]
    for row in default_rows():
        default = f"`{row.default}`" if row.default else ""
        lines.append(f"| `{row.name}` | {default} | {row.accepts} | {row.description} |")
    return "\n".join(lines) + "\n"


def environment_example() -> str:
    """`.env.example`: every setting, commented out, with its default."""
    lines = ["# Copy to .env and set what you need; everything has a default. Written by `make docs`."]
    for row in default_rows():
        lines += ["", f"# {row.description} ({row.accepts})", f"# {row.name}={row.default}"]
    return "\n".join(lines) + "\n"
