"""A bound on the bytes that a producer holds: first come, first served."""

from __future__ import annotations

import asyncio
from collections import deque


class ByteBudget:
    """At most `total` bytes are out at once; who asks for more waits in line. For one event loop."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._out = 0
        self._line: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size: int) -> int:
        """Waits until so many bytes are free; gives what must be given back. More than the total counts as the total."""
        size = min(size, self._total)
        if not self._line and self._out + size <= self._total:
            self._out += size
            return size
        turn = asyncio.get_running_loop().create_future()
        entry = (size, turn)
        self._line.append(entry)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                if entry in self._line:
                    self._line.remove(entry)
                self._call_next()  # the one behind may fit where this one did not
            else:
                self.give_back(size)
            raise
        return size

    def give_back(self, size: int) -> None:
        """Frees what `take` gave."""
        self._out -= size
        self._call_next()

    def _call_next(self) -> None:
        while self._line and self._out + self._line[0][0] <= self._total:
            size, turn = self._line.popleft()
            if turn.cancelled():
                # It was cancelled in this very step of the loop and finds itself out of the line.
                continue
            self._out += size
            turn.set_result(None)
