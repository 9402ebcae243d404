"""A model of what streaming hosts do to lanes: deliver, commit past holes, take partitions away while records are in work.

Like Faust it commits up to the highest acknowledged offset of an assignment, whatever is missing below: so a wrong acknowledgement shows as a
lost record. Its rebalance waits for every record it handed out that is neither acknowledged nor forgotten.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from agents.lanes import Handler, Lanes


@dataclass(eq=False)
class SimulatedRecord:
    host: PartitionHost
    partition: int
    key: bytes | None
    offset: int
    generation: int

    def ack(self) -> None:
        self.host.acknowledge(self)

    def forget(self) -> None:
        self.host.unacked.discard(self)

    def is_stale(self) -> bool:
        return not self.host.flowing or self.generation != self.host.generation


@dataclass
class PartitionHost:
    """`keys[p][offset]` is the key of a record; all records are on the log from the start."""

    keys: Sequence[Sequence[bytes]]
    generation: int = 1
    flowing: bool = True
    unacked: set[SimulatedRecord] = field(default_factory=set)
    committed: dict[int, int] = field(default_factory=dict)
    acknowledged: list[SimulatedRecord] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    rebalances: int = 0
    _acked: dict[int, list[int]] = field(default_factory=dict)
    _wish: asyncio.Event = field(default_factory=asyncio.Event)

    def acknowledge(self, record: SimulatedRecord) -> None:
        if record.generation != self.generation:
            self.faults.append(f"{record.partition}/{record.offset} acknowledged in a later assignment")
        expected = max(self._acked.get(record.partition) or [self.committed.get(record.partition, 0) - 1]) + 1
        if record.offset != expected:
            self.faults.append(f"{record.partition}/{record.offset} acknowledged before {expected}")
        self._acked.setdefault(record.partition, []).append(record.offset)
        self.acknowledged.append(record)
        self.unacked.discard(record)

    def commit(self) -> None:
        for partition, offsets in self._acked.items():
            self.committed[partition] = max(self.committed.get(partition, 0), max(offsets) + 1)

    def rejoin(self, partition: Hashable = None) -> None:
        """For `on_lost`: the next rebalance comes at once."""
        self._wish.set()

    async def rebalance(self) -> None:
        """As a consumer group does it: stop the flow, wait for what is in work, commit, begin again at what is committed."""
        self._wish.clear()
        self.rebalances += 1
        self.flowing = False
        while self.unacked:  # noqa: ASYNC110  as Faust does
            await asyncio.sleep(0.01)
        self.commit()
        self._acked.clear()
        self.generation += 1
        self.flowing = True

    async def feed(self, lanes: Lanes[SimulatedRecord], pauses: Sequence[float]) -> None:
        """Delivers until everything is committed, interleaving partitions, starting over after each rebalance."""
        step = 0
        while not self.all_committed():
            generation, flows = self.generation, self.flowing
            if flows:
                queue = [
                    SimulatedRecord(self, partition, key, offset, generation)
                    for offset, partition, key in sorted(
                        (offset, partition, key)
                        for partition, keys in enumerate(self.keys)
                        for offset, key in enumerate(keys)
                        if offset >= self.committed.get(partition, 0)
                    )
                ]
                for record in queue:
                    if self.generation != generation or not self.flowing:
                        break
                    self.unacked.add(record)
                    lanes.take(record)
                    await lanes.room()
                    pause = pauses[step % len(pauses)] if pauses else 0.0
                    step += 1
                    await asyncio.sleep(pause)
            while self.generation == generation and self.flowing == flows and not self.all_committed():
                if self._wish.is_set():
                    await self.rebalance()
                else:
                    self.commit()
                    await asyncio.sleep(0.05)

    def all_committed(self) -> bool:
        return all(self.committed.get(partition, 0) >= len(keys) for partition, keys in enumerate(self.keys))


def lanes_on(
    host: PartitionHost,
    handle: Handler[SimulatedRecord],
    *,
    slots: int = 4,
    turn_records: int = 4,
    max_pending: int = 64,
) -> Lanes[SimulatedRecord]:
    """Lanes that report to the host."""

    def broken(error: BaseException) -> None:
        host.faults.append(f"broken: {error!r}")

    return Lanes(
        handle,
        slots=asyncio.Semaphore(slots),
        turn_records=turn_records,
        max_pending=max_pending,
        on_lost=host.rejoin,
        on_broken=broken,
    )
