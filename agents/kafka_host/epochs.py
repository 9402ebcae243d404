"""Epochs: claims in the store the partitions this process was assigned, so that whoever had them before cannot write any more.

The claim runs in the background: a rebalance stops the whole group and must not wait for the store. Turns of fenced stages wait for it instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import structlog

from agents.breaker import Breaker, Breakers
from agents.group_commit import Backoff
from graph.model import Fence
from topics.errors import Outage

RaiseEpochs = Callable[[Sequence[str]], Awaitable[Mapping[str, int]]]

CLAIM_DEADLINE_S = 10.0
_BACKOFF = Backoff()

_log = structlog.get_logger()


def partition_id(log_id: str, group: str, topic: str, partition: int) -> str:
    """What the store knows a partition by. `topic` by its plain name."""
    return f"{log_id}/{group}/{topic}/{partition}"


class Epochs:
    """Of one process. `claim` at each assignment, `forget` when it ends; between the two `fence` answers once the store has."""

    def __init__(self, raise_epochs: RaiseEpochs, breakers: Breakers) -> None:
        self._raise = raise_epochs
        self._breakers = breakers
        self._known: dict[str, int] = {}
        self._claiming: asyncio.Task[None] | None = None

    def fence(self, partition: str) -> Fence | None:
        """None while the claim is under way."""
        epoch = self._known.get(partition)
        return Fence(partition, epoch) if epoch is not None else None

    def is_claiming(self) -> bool:
        return self._claiming is not None and not self._claiming.done()

    def forget(self) -> None:
        """A rebalance begins. An epoch of before it is never used after it: another owner may have been in between."""
        self._known = {}
        if self._claiming is not None:
            self._claiming.cancel()
            self._claiming = None

    def claim(self, partitions: Sequence[str]) -> None:
        """Raises the epochs of these, without limit of time."""
        self.forget()
        if partitions:
            self._claiming = asyncio.create_task(self._claim(sorted(partitions)))

    async def close(self) -> None:
        claiming = self._claiming
        self.forget()
        if claiming is not None:
            await asyncio.wait((claiming,))

    async def _claim(self, partitions: Sequence[str]) -> None:
        tries = 0
        tripped: set[Breaker] = set()
        while True:
            try:
                async with asyncio.timeout(CLAIM_DEADLINE_S):
                    epochs = await self._raise(partitions)
            except Exception as error:  # noqa: BLE001  whatever it is, without epochs nothing can be written
                tries += 1
                if isinstance(error, Outage):
                    tripped.add(self._breakers.trip(error))
                _log.warning("worker.epochs_not_raised", tries=tries, error_type=type(error).__name__)
                await asyncio.sleep(_BACKOFF.seconds(tries))
            else:
                self._known = dict(epochs)
                for breaker in tripped:
                    breaker.reset()
                _log.info("worker.epochs_raised", partitions=len(epochs))
                return
