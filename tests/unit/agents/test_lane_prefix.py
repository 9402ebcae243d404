"""A model test of the acknowledgement prefix: hypothesis plays host and handlers, step by step, and looks for a step that breaks the books."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agents.lanes import Abandoned, Lease
from tests.simulators.partition_host import PartitionHost, SimulatedRecord, lanes_on
from tests.simulators.virtual_time import VirtualTimeLoop

KEYS = (b"a", b"b", b"c")


class AcknowledgementModel(RuleBasedStateMachine):
    """The model: which offsets of this assignment have been handled. Acknowledged may be only what is handled and has no gap before it."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = VirtualTimeLoop()
        self.host = PartitionHost([[]])
        self.handled: set[int] = set()
        self.next = 0
        self.log: list[bytes] = []
        self.in_work: dict[bytes | None, tuple[Sequence[SimulatedRecord], Lease, asyncio.Future[str]]] = {}
        self.rebalancing = False
        self.lanes = lanes_on(self.host, self.handle, slots=2, turn_records=3, max_pending=1000)

    async def handle(self, records: Sequence[SimulatedRecord], lease: Lease) -> None:
        key = records[0].key
        assert key not in self.in_work
        fate: asyncio.Future[str] = self.loop.create_future()
        self.in_work[key] = (records, lease, fate)
        try:
            if await fate == "abandon":
                raise Abandoned
        finally:
            del self.in_work[key]
        self.handled |= {record.offset for record in records if record.generation == self.host.generation}

    def settle(self) -> None:
        """Lets everything run that can."""

        async def turns_of_the_loop() -> None:
            for _ in range(10):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turns_of_the_loop())

    @rule(key=st.sampled_from(KEYS))
    @precondition(lambda self: not self.rebalancing)
    def deliver(self, key: bytes) -> None:
        if self.next == len(self.log):
            self.log.append(key)
        record = SimulatedRecord(self.host, 0, self.log[self.next], self.next, self.host.generation)
        self.next += 1

        async def take() -> None:
            self.host.unacked.add(record)
            self.lanes.take(record)

        self.loop.run_until_complete(take())
        self.settle()

    @rule(which=st.integers(0, 2), fate=st.sampled_from(("done", "done", "done", "abandon")))
    @precondition(lambda self: self.in_work)
    def end_a_turn(self, which: int, fate: str) -> None:
        turns = sorted(self.in_work.items(), key=str)
        turns[which % len(turns)][1][2].set_result(fate)
        self.settle()

    @rule(which=st.integers(0, 2), count=st.integers(1, 3))
    @precondition(lambda self: self.in_work)
    def finish_a_part(self, which: int, count: int) -> None:
        turns = sorted(self.in_work.items(), key=str)
        records, lease, _ = turns[which % len(turns)][1]
        finished = records[:count]
        lease.finish(len(finished))
        self.handled |= {record.offset for record in finished if record.generation == self.host.generation}

    @rule()
    @precondition(lambda self: not self.rebalancing)
    def begin_a_rebalance(self) -> None:
        self.rebalancing = True
        self.host.flowing = False
        self.settle()

    @rule()
    @precondition(lambda self: self.rebalancing and not self.host.unacked)
    def end_a_rebalance(self) -> None:
        self.host.commit()
        self.host._acked.clear()
        self.host.generation += 1
        self.host.flowing = True
        self.rebalancing = False
        self.next = self.host.committed.get(0, 0)
        self.handled = set(range(self.next))
        self.settle()

    @invariant()
    def acknowledged_is_a_handled_prefix(self) -> None:
        assert self.host.faults == []
        mine = [each.offset for each in self.host.acknowledged if each.generation == self.host.generation]
        base = self.host.committed.get(0, 0)
        assert mine == list(range(base, base + len(mine)))
        assert set(mine) <= self.handled

    @invariant()
    def a_rebalance_waits_for_turns_in_work_and_nothing_else(self) -> None:
        if self.rebalancing and not self.in_work:
            assert self.host.unacked == set()

    def teardown(self) -> None:
        self.loop.run_until_complete(self.lanes.close())
        assert self.host.unacked == set()
        self.loop.close()


AcknowledgementModel.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestAcknowledgementPrefix = AcknowledgementModel.TestCase
