"""Ways to read that the connectors' tests share."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from connectors.base import FileSource, Item, ReadOptions, Skipped
from connectors.mail.normalize import Found, normalize
from topics.clock import SettableClock
from topics.records import SourceEvent

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
OPTIONS = ReadOptions("ann", clock=SettableClock(NOW))


def mail(raw: bytes | str, options: ReadOptions = OPTIONS) -> SourceEvent:
    """The event of one mail; fails if it is skipped."""
    data = raw if isinstance(raw, bytes) else raw.encode()
    outcome = normalize(data, Found("mbox", "here", arrived_at=NOW), options)
    assert isinstance(outcome, SourceEvent), outcome
    return outcome


def letter(body: bytes | str, *headers: str, date: str = "Mon, 2 Mar 2026 10:00:00 +0100") -> bytes:
    """A mail with the usual headers, some more, and a body."""
    head = [
        "From: Ann Lee <ann@example.com>",
        "To: Bob <bob@example.org>",
        "Message-ID: <m1@example.com>",
        f"Date: {date}",
        *headers,
    ]
    return "\n".join(head).encode() + b"\n\n" + (body if isinstance(body, bytes) else body.encode())


def read_all(source: FileSource, path: Path, options: ReadOptions = OPTIONS) -> list[Item]:
    return list(source.read(path, options))


def events(items: Iterable[Item]) -> list[SourceEvent]:
    return [item.outcome for item in items if isinstance(item.outcome, SourceEvent)]


def skipped(items: Iterable[Item]) -> list[Skipped]:
    return [item.outcome for item in items if isinstance(item.outcome, Skipped)]


def stated(event: SourceEvent) -> list[tuple[str, str, str]]:
    return [(fact.subject, fact.relation, fact.object) for fact in event.stated_facts]
