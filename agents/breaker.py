"""Circuit breakers, one a service: an outage pauses all who need the service, and one turn at a time tries whether it is back.

closed ── Outage ──► open ── after a wait, the first who asks ──► half open ── it worked ──► closed
                      ▲                                              │
                      └─────────────── Outage, with a longer wait ◄──┘
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Literal

import structlog

from agents.group_commit import Backoff
from topics.errors import Outage, Retryable

State = Literal["closed", "open", "half_open"]

PROBE_BACKOFF = Backoff(first=timedelta(milliseconds=500), cap=timedelta(seconds=10))
RETRY_AFTER_CAP = timedelta(minutes=1)
"""The longest wait between probes that a service may ask for."""
FORGET_AFTER_S = 120.0
"""A service in use is tried far more often while it is away; one that nobody has tried for so long is not known to be away."""

_log = structlog.get_logger()


class Breaker:
    """Of one service. Not for threads."""

    def __init__(self, service: str, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.service = service
        self.state: State = "closed"
        self.reason = ""
        """What the last outage said; "" while closed."""
        self._monotonic = monotonic
        self._failures = 0
        self._probe_at = 0.0
        self._tripped_at = 0.0

    def enter(self) -> bool:
        """May the caller use the service now? If the breaker was open, a True makes the caller the probe: it must report back."""
        if self.state == "closed":
            return True
        if self.state == "half_open" or self._monotonic() < self._probe_at:
            return False
        self.state = "half_open"
        return True

    def wait_s(self) -> float:
        """Seconds after which asking again makes sense, at least 0.05."""
        return max(0.05, self._probe_at - self._monotonic() if self.state == "open" else 0.1)

    def is_away(self) -> bool:
        """Not closed, and somebody has met the outage lately."""
        return self.state != "closed" and self._monotonic() - self._tripped_at < FORGET_AFTER_S

    def trip(self, error: Outage) -> None:
        """The service is away."""
        if self.state == "closed":
            _log.warning(
                "breaker.opened",
                service=self.service,
                error_type=type(error.__cause__ or error).__name__,
                error=str(error),
            )
        if self.state != "open":  # others that fail in the same outage do not lengthen the wait
            self._failures += 1
            asked = min(error.retry_after or timedelta(0), RETRY_AFTER_CAP).total_seconds()
            self._probe_at = self._monotonic() + max(asked, PROBE_BACKOFF.seconds(self._failures))
        self.state = "open"
        self.reason = str(error)
        self._tripped_at = self._monotonic()

    def release(self) -> None:
        """The probe ended without having shown anything: let the next one try."""
        if self.state == "half_open":
            self.state = "open"

    def reset(self) -> None:
        """The service answered."""
        if self.state != "closed":
            _log.info("breaker.closed", service=self.service)
        self.state, self.reason, self._failures = "closed", "", 0


class Breakers:
    """All breakers of a process; made when first asked for."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._by_service: dict[str, Breaker] = {}

    def __iter__(self) -> Iterator[Breaker]:
        return iter(list(self._by_service.values()))

    def of(self, service: str) -> Breaker:
        if service not in self._by_service:
            self._by_service[service] = Breaker(service, self._monotonic)
        return self._by_service[service]

    def trip(self, error: Outage) -> Breaker:
        breaker = self.of(error.service)
        breaker.trip(error)
        return breaker

    def away(self) -> tuple[str, ...]:
        """Services that are known to be away."""
        return tuple(breaker.service for breaker in self if breaker.is_away())


class CommitterBreaker:
    """A CommitObserver: a committer waits for its service by itself, and its breaker tells everybody."""

    def __init__(self, breaker: Breaker) -> None:
        self._breaker = breaker

    def committed(self, plans: int, seconds: float) -> None:
        self._breaker.reset()

    def repeated(self, error: Retryable) -> None:
        if isinstance(error, Outage):
            self._breaker.trip(error)

    def split(self) -> None: ...
