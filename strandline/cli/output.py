"""What people and programs are shown: answers on standard output, everything else on standard error.

A terminal gets tables drawn by rich; a pipe gets the same rows, tab-separated under one line of names. With `--json` standard output holds
exactly one JSON document (or one a line, for what never ends), and no hint stands beside it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import unicodedata
from collections.abc import Coroutine, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import typer

if TYPE_CHECKING:
    from strandline.settings import Settings

T = TypeVar("T")

_debug: ContextVar[bool] = ContextVar("debug", default=False)


def on_terminal() -> bool:
    """Whether a person reads standard output."""
    return sys.stdout.isatty()


def show(text: str = "") -> None:
    """A line of the answer."""
    typer.echo(text)


def show_json(value: object) -> None:
    """The answer as JSON: a model as it is, anything else by `json`."""
    dump = getattr(value, "model_dump_json", None)
    typer.echo(dump() if dump is not None else json.dumps(value, ensure_ascii=False))


def tell(text: str) -> None:
    """A message beside the answer."""
    typer.echo(text, err=True)


def next_step(command: str, why: str) -> None:
    """What to do now. Not for `--json`: its caller knows."""
    tell(f"Next: {command}   ({why})")


def table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows of texts under their names."""
    if not on_terminal():
        for row in (names, *rows):
            show("\t".join(one_line(cell) for cell in row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        drawn.add_column(name, overflow="fold")
    for row in rows:
        # Text, not str: what people wrote is no markup.
        drawn.add_row(*(Text(printable(cell)) for cell in row))
    Console().print(drawn)


def printable(text: str) -> str:
    """Without characters that would steer a terminal; line breaks and tabs stay."""
    return "".join(char for char in text if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs"))


def one_line(text: str) -> str:
    """Printable, and every run of white space one space."""
    return " ".join(printable(text).split())


def shortened(text: str, limit: int) -> str:
    """At most `limit` characters on one line, with an ellipsis where something was left out."""
    line = one_line(text)
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def day(at: datetime) -> str:
    """A date where the time is midnight UTC, else date and minute."""
    utc = at.astimezone(UTC)
    return f"{utc:%Y-%m-%d}" if utc.time() == datetime.min.time() else f"{utc:%Y-%m-%d %H:%M} UTC"


def counted(number: int, thing: str) -> str:
    """ "1 fact", "2 facts"."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def duration(span: timedelta) -> str:
    """Two figures at most: 850 ms, 12 s, 3 min 20 s, 2 h 5 min."""
    seconds = span.total_seconds()
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.0f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"


def set_debug(debug: bool) -> None:
    """Whether logs are wanted from debug up, whatever else is set."""
    _debug.set(debug)


def run(work: Coroutine[Any, Any, T], *, logs: Settings | None = None) -> T:
    """Runs a command's coroutine; Ctrl-C ends with 130, as shells expect.

    `logs` is for a process that runs on: it logs as they have it. Other commands log nothing without --debug: their own words are the answer.
    """
    from strandline.telemetry import configure_logging

    quiet = logs is None and not _debug.get()
    if _debug.get():
        configure_logging("auto", "debug")
    elif logs is not None:
        configure_logging(logs.log_format, logs.log_level)
    else:
        configure_logging()
    logging.disable(logging.CRITICAL if quiet else logging.NOTSET)
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    finally:
        logging.disable(logging.NOTSET)
