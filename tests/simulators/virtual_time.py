"""An event loop whose clock jumps: a wait of minutes takes no time, and a wait for what never comes is an error instead of a hang."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Stuck(Exception):
    """Nothing is scheduled any more and the program has not ended: a deadlock."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Its `time()` moves only when nothing can run. No I/O happens on it."""

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        select = self._selector.select  # type: ignore[attr-defined]

        def jump(timeout: float | None = None) -> Any:
            if timeout is None:
                raise Stuck
            if timeout > 0:
                self._now += timeout
            return select(0)

        self._selector.select = jump  # type: ignore[attr-defined]

    def time(self) -> float:
        return self._now


def run(program: Coroutine[Any, Any, T]) -> T:
    """Runs `program` to its end on a fresh loop. Raises Stuck for a deadlock."""
    loop = VirtualTimeLoop()
    try:
        return loop.run_until_complete(program)
    except Stuck:
        for task in asyncio.all_tasks(loop):
            task.cancel()
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        raise
    finally:
        loop.close()
