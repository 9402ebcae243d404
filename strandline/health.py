"""Health: whether each service answers, asked side by side, never longer than a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog

from topics.errors import StrandlineError

log = structlog.get_logger(__name__)

Check = Callable[[], Awaitable[object]]
"""Returns if the service answers; else raises, or takes too long."""

PATIENCE: Final = timedelta(seconds=3)
_FRESH: Final = timedelta(seconds=1)
"""Answers are reused so long: a probe in a tight loop must not become load on the services."""


@dataclass(frozen=True, slots=True)
class PartState:
    """`error` is "" when the part answers."""

    name: str
    error: str = ""

    @property
    def ok(self) -> bool:
        return not self.error


class HealthCheck:
    """Asks the services by name, in the order given."""

    def __init__(self, checks: Mapping[str, Check], *, patience: timedelta = PATIENCE) -> None:
        self._checks = dict(checks)
        self._patience = patience
        self._known: dict[str, tuple[float, PartState]] = {}
        self._asking: dict[str, asyncio.Task[PartState]] = {}

    async def part(self, name: str) -> PartState:
        """One service; an answer of the last second is given again, and callers at the same time share one question."""
        now = asyncio.get_running_loop().time()
        at, state = self._known.get(name, (float("-inf"), PartState(name)))
        if now - at < _FRESH.total_seconds():
            return state
        asking = self._asking.get(name)
        if asking is None or asking.done():
            asking = self._asking[name] = asyncio.create_task(self._ask(name), name=f"health of {name}")
        return await asyncio.shield(asking)

    async def parts(self) -> tuple[PartState, ...]:
        """All services."""
        return tuple(await asyncio.gather(*map(self.part, self._checks)))

    async def _ask(self, name: str) -> PartState:
        error = ""
        try:
            async with asyncio.timeout(self._patience.total_seconds()):
                await self._checks[name]()
        except TimeoutError:
            error = f"no answer within {self._patience.total_seconds():g} s"
        except StrandlineError as refusal:
            error = str(refusal)
        except Exception as bug:  # noqa: BLE001  a driver may raise anything; a health page must not fail for it
            # A driver's own text may hold an address with a password: the log has it, a page that anybody may read has not.
            log.warning("health.check_failed", part=name, error=f"{type(bug).__name__}: {bug}")
            error = f"the check failed: {type(bug).__name__}"
        state = PartState(name, error)
        self._known[name] = (asyncio.get_running_loop().time(), state)
        return state
