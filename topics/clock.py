"""Time as a dependency, so that tests can set it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Gives the current instant."""

    def now(self) -> datetime:
        """An aware UTC instant; may step back when the machine's clock is corrected."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


class SettableClock:
    """A clock that stands still until told: for tests."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def advance(self, by: timedelta) -> None:
        self.at += by
