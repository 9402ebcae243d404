"""Options that several commands take, and how what people write becomes a value."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from strandline.settings import Settings

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
UserOption = Annotated[
    str | None, typer.Option("--user", "-u", metavar="NAME", help="Whose memory; else STRANDLINE_USER.")
]
DatasetOption = Annotated[
    str | None, typer.Option("--dataset", "-d", metavar="NAME", help="Which dataset; else STRANDLINE_DATASET.")
]
UrlOption = Annotated[str | None, typer.Option("--url", metavar="URL", help="The server; else STRANDLINE_URL.")]


def settings() -> Settings:
    """The process's settings, loaded when a command runs: reading them takes longer than `--help` may."""
    from strandline.settings import load

    return load()


def instant(written: str) -> datetime:
    """A date (its midnight, UTC) or an RFC 3339 time with a zone, as UTC. typer.BadParameter otherwise: a guessed zone would move facts."""
    try:
        if len(written) == len("2026-03-01"):
            return datetime.combine(date.fromisoformat(written), time(), UTC)
        at = datetime.fromisoformat(written)
        if at.tzinfo is None:
            raise typer.BadParameter(f"{written} has no zone: write {written}Z for UTC, or a zone such as +01:00")
        return at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{written} is no time: write a date like 2026-03-01, or 2026-03-01T09:30:00Z"
        ) from None
