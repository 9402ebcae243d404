"""Lanes against a model of the host: nothing lost, nothing out of order, whatever fails or is taken away meanwhile."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.lanes import Abandoned, Lanes, Lease
from tests.simulators.partition_host import PartitionHost, SimulatedRecord, lanes_on
from tests.simulators.virtual_time import run

A, B, C = b"a", b"b", b"c"


@dataclass
class Store:
    """Where effects land: once per record thanks to its fence, and it sees who works on a key at once."""

    effects: dict[tuple[int, bytes | None], list[int]] = field(default_factory=lambda: defaultdict(list))
    in_work: set[tuple[int, bytes | None]] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)

    def begin(self, records: Sequence[SimulatedRecord]) -> tuple[int, bytes | None]:
        lane = (records[0].partition, records[0].key)
        if lane in self.in_work:
            self.faults.append(f"two turns of {lane} at once")
        if {(record.partition, record.key) for record in records} != {lane}:
            self.faults.append("a turn of several keys")
        self.in_work.add(lane)
        self.turns.append(len(records))
        return lane

    def apply(self, record: SimulatedRecord) -> None:
        done = self.effects[record.partition, record.key]
        if not done or record.offset > done[-1]:
            done.append(record.offset)


def whole_story(host: PartitionHost) -> dict[tuple[int, bytes | None], list[int]]:
    story: dict[tuple[int, bytes | None], list[int]] = defaultdict(list)
    for partition, keys in enumerate(host.keys):
        for offset, key in enumerate(keys):
            story[partition, key].append(offset)
    return story


@dataclass(frozen=True)
class Chaos:
    """One random run, drawn from a seed so that it can be repeated."""

    seed: int
    partitions: int
    records: int
    keys: int
    slots: int
    turn_records: int
    max_pending: int
    rebalances: int


chaos = st.builds(
    Chaos,
    seed=st.integers(0, 2**32),
    partitions=st.integers(1, 3),
    records=st.integers(1, 40),
    keys=st.integers(1, 5),
    slots=st.integers(1, 4),
    turn_records=st.integers(1, 6),
    max_pending=st.integers(1, 12),
    rebalances=st.integers(0, 5),
)


async def live_through(case: Chaos, lanes_type: type[Lanes[SimulatedRecord]] = Lanes) -> tuple[PartitionHost, Store]:
    dice = random.Random(case.seed)
    host = PartitionHost(
        [[bytes([97 + dice.randrange(case.keys)]) for _ in range(case.records)] for _ in range(case.partitions)]
    )
    store = Store()

    async def handle(records: Sequence[SimulatedRecord], lease: Lease) -> None:
        lane = store.begin(records)
        try:
            turn = list(records)
            for number, record in enumerate(turn, start=1):  # grows meanwhile
                await asyncio.sleep(dice.choice((0.0, 0.0, 0.01, 0.1, 0.5)))
                store.apply(record)
                fate = dice.random()
                if fate < 0.1:
                    await lease.pause(dice.choice((0.0, 0.05, 1.0)))
                elif fate < 0.13:
                    raise Abandoned
                elif fate < 0.3:
                    lease.finish(number)
                elif fate < 0.4:
                    turn += lease.widen()
        finally:
            store.in_work.discard(lane)

    lanes = lanes_on(host, handle, slots=case.slots, turn_records=case.turn_records, max_pending=case.max_pending)
    lanes.__class__ = lanes_type

    async def disturb() -> None:
        for _ in range(case.rebalances):
            await asyncio.sleep(dice.uniform(0.0, 1.0))
            if host.flowing:
                await host.rebalance()

    pauses = [dice.choice((0.0, 0.0, 0.01, 0.2)) for _ in range(20)]
    disturbance = asyncio.create_task(disturb())
    try:
        async with asyncio.timeout(10_000):
            await host.feed(lanes, pauses)
            await disturbance
    finally:
        disturbance.cancel()
        await lanes.close()
    assert lanes.pending == 0
    return host, store


@given(chaos)
@settings(max_examples=300, deadline=None)
def test_every_record_has_its_effect_once_and_in_order_whatever_is_taken_away(case: Chaos) -> None:
    host, store = run(live_through(case))
    assert host.faults == []
    assert store.faults == []
    assert store.effects == whole_story(host)
    assert max(store.turns) <= case.turn_records


class WithoutPrefix(Lanes[SimulatedRecord]):
    """Guard off: acknowledges whatever is handled."""

    def _settle(self, turn, claim) -> None:  # type: ignore[no-untyped-def]
        super()._settle(turn, claim)
        for entry in [entry for entry in claim.delivered if entry.done]:
            claim.delivered.remove(entry)
            entry.record.ack()
            self._count(-1)


class VoidByTheFirst(Lanes[SimulatedRecord]):
    """Guard off: judges a turn by its first record, so the void tail of a turn in work is never forgotten."""

    def _settle(self, turn, claim) -> None:  # type: ignore[no-untyped-def]
        if turn.entries[0].void or turn.finished < len(turn.entries):
            return super()._settle(turn, claim)
        for entry in turn.entries:
            entry.started, entry.done = False, True
        return self._release(claim)


class NotWaitingForTheOld(Lanes[SimulatedRecord]):
    """Guard off: a new lane does not wait for a void run of its key."""

    def _start(self, claim, lane_id) -> None:  # type: ignore[no-untyped-def]
        self._tasks.pop(lane_id, None)
        super()._start(claim, lane_id)

    def _give_up(self, claim, **options) -> None:  # type: ignore[no-untyped-def]
        for entry in claim.delivered:
            entry.record.forget()  # too early
        super()._give_up(claim, **options)


class KeepingNothing(Lanes[SimulatedRecord]):
    """Guard off: goes on with a claim that was given up, acknowledging past its void records."""

    def take(self, record: SimulatedRecord) -> None:
        claim = self._claims.get(record.partition)
        if claim is not None and not claim.is_open():
            del self._claims[record.partition]
        super().take(record)


@pytest.mark.parametrize("guardless", [WithoutPrefix, NotWaitingForTheOld, KeepingNothing])
def test_each_guard_is_seen_by_the_property_when_it_is_off(guardless: type[Lanes[SimulatedRecord]]) -> None:
    def sound(seed: int) -> bool:
        case = Chaos(seed, partitions=2, records=30, keys=3, slots=4, turn_records=5, max_pending=12, rebalances=4)
        try:
            host, store = run(live_through(case, guardless))
        except TimeoutError:
            return False
        return not host.faults and not store.faults and store.effects == whole_story(host)

    assert not all(sound(seed) for seed in range(60))


def test_records_that_wait_make_one_turn_and_other_keys_run_beside_them() -> None:
    async def program() -> None:
        host = PartitionHost([[A, A, B, A, A]])
        turns: list[tuple[bytes | None, list[int]]] = []
        gate = asyncio.Event()

        async def handle(records: Sequence[SimulatedRecord], lease: Lease) -> None:
            turns.append((records[0].key, [record.offset for record in records]))
            if records[0].key == A:
                await gate.wait()

        lanes = lanes_on(host, handle, turn_records=3)
        for offset, key in enumerate(host.keys[0]):
            lanes.take(SimulatedRecord(host, 0, key, offset, 1))
        await asyncio.sleep(1)
        assert turns == [(A, [0, 1, 3]), (B, [2])]
        assert host.acknowledged == []
        gate.set()
        await asyncio.sleep(1)
        assert turns == [(A, [0, 1, 3]), (B, [2]), (A, [4])]
        assert [record.offset for record in host.acknowledged] == [0, 1, 2, 3, 4]
        await lanes.close()

    run(program())


def test_a_widened_turn_holds_all_that_waits_and_acknowledges_nothing_before_its_end() -> None:
    async def program() -> None:
        host = PartitionHost([[A, B, A, A, A]])
        widened: list[int] = []
        gate = asyncio.Event()

        async def handle(records: Sequence[SimulatedRecord], lease: Lease) -> None:
            if records[0].key == A:
                await lease.pause(1)
                widened.extend(record.offset for record in lease.widen())
                assert lease.widen() == []
                await gate.wait()

        lanes = lanes_on(host, handle, turn_records=1)
        for offset, key in enumerate(host.keys[0]):
            lanes.take(SimulatedRecord(host, 0, key, offset, 1))
        await asyncio.sleep(2)
        assert widened == [2, 3, 4]
        assert host.acknowledged == []
        gate.set()
        await asyncio.sleep(1)
        assert [record.offset for record in host.acknowledged] == [0, 1, 2, 3, 4]
        assert host.faults == []
        assert lanes.pending == 0
        await lanes.close()

    run(program())


def test_a_turn_whose_partition_goes_away_is_not_widened() -> None:
    async def program() -> None:
        host = PartitionHost([[A, A]])
        widened: list[Sequence[SimulatedRecord]] = []
        rebalancing = asyncio.Event()

        async def handle(records: Sequence[SimulatedRecord], lease: Lease) -> None:
            await rebalancing.wait()
            widened.append(lease.widen())

        lanes = lanes_on(host, handle, turn_records=1)
        for offset, key in enumerate(host.keys[0]):
            record = SimulatedRecord(host, 0, key, offset, 1)
            host.unacked.add(record)
            lanes.take(record)
        await asyncio.sleep(1)
        rebalance = asyncio.create_task(host.rebalance())
        await asyncio.sleep(1)
        rebalancing.set()
        await rebalance
        assert widened == [()]
        assert host.committed == {0: 1}
        assert host.faults == []
        await lanes.close()

    run(program())


def test_reading_stops_at_max_pending_and_goes_on_when_there_is_room() -> None:
    async def program() -> None:
        host = PartitionHost([[A, B, C]])
        gate = asyncio.Event()

        async def handle(records: Sequence[SimulatedRecord], lease: Lease) -> None:
            await gate.wait()

        lanes = lanes_on(host, handle, max_pending=2)
        feeding = asyncio.create_task(host.feed(lanes, []))
        await asyncio.sleep(1)
        assert lanes.pending == 2
        assert lanes.is_full()
        gate.set()
        await feeding
        assert host.committed == {0: 3}
        await lanes.close()

    run(program())


async def slow_turn_and_rebalance(lanes_type: type[Lanes[SimulatedRecord]]) -> PartitionHost:
    """A slow turn of A (0 and 3) and one of B (1), while C (2) waits for a slot. The rebalance begins, B ends, C sees that it is stale."""
    host = PartitionHost([[A, B, C, A]])
    gates = {A: asyncio.Event(), B: asyncio.Event()}

    async def handle(records: Sequence[SimulatedRecord], lease: Lease) -> None:
        await gates[records[0].key or b""].wait()

    lanes = lanes_on(host, handle, slots=2)
    lanes.__class__ = lanes_type
    for offset, key in enumerate(host.keys[0]):
        record = SimulatedRecord(host, 0, key, offset, 1)
        host.unacked.add(record)
        lanes.take(record)
    await asyncio.sleep(1)
    rebalance = asyncio.create_task(host.rebalance())
    await asyncio.sleep(1)
    gates[B].set()
    await asyncio.sleep(1)
    assert not rebalance.done()
    gates[A].set()
    async with asyncio.timeout(100):
        await rebalance
    await lanes.close()
    return host


def test_the_void_tail_of_a_turn_in_work_is_forgotten_while_its_head_is_acknowledged() -> None:
    host = run(slow_turn_and_rebalance(Lanes))
    assert [record.offset for record in host.acknowledged] == [0, 1]
    assert host.committed == {0: 2}
    assert host.faults == []


def test_judging_a_turn_by_its_first_record_would_hold_the_rebalance_for_ever() -> None:
    with pytest.raises(TimeoutError):
        run(slow_turn_and_rebalance(VoidByTheFirst))


def test_a_pausing_turn_frees_its_slot_and_ends_soon_after_its_partition_is_taken_away() -> None:
    async def program() -> None:
        host = PartitionHost([[A, B]])
        others = asyncio.Event()

        async def handle(records: Sequence[SimulatedRecord], lease: Lease) -> None:
            if records[0].key == A:
                await lease.pause(3600)
            others.set()

        lanes = lanes_on(host, handle, slots=1)
        for offset, key in enumerate(host.keys[0]):
            record = SimulatedRecord(host, 0, key, offset, 1)
            host.unacked.add(record)
            lanes.take(record)
        await others.wait()
        before = asyncio.get_running_loop().time()
        await host.rebalance()
        assert asyncio.get_running_loop().time() - before < 1
        assert host.committed == {}
        await lanes.close()

    run(program())


def test_a_claim_given_up_by_its_handler_acknowledges_nothing_until_a_new_assignment() -> None:
    async def program() -> None:
        host = PartitionHost([[A, B, C, A]])
        fenced = True

        async def handle(records: Sequence[SimulatedRecord], lease: Lease) -> None:
            if records[0].key == B and fenced:
                raise Abandoned

        lanes = lanes_on(host, handle)
        feeding = asyncio.create_task(host.feed(lanes, [0.2]))
        await asyncio.sleep(0.5)
        assert [record.offset for record in host.acknowledged] == [0]
        fenced = False
        await feeding
        assert host.rebalances == 1
        assert host.faults == []
        await lanes.close()

    run(program())


def test_closing_ends_turns_in_work_and_leaves_nothing_to_wait_for() -> None:
    async def program() -> None:
        host = PartitionHost([[A, B, A]])
        ended: list[bytes | None] = []

        async def handle(records: Sequence[SimulatedRecord], lease: Lease) -> None:
            try:
                await asyncio.sleep(3600)
            finally:
                ended.append(records[0].key)

        lanes = lanes_on(host, handle)
        for offset, key in enumerate(host.keys[0]):
            record = SimulatedRecord(host, 0, key, offset, 1)
            host.unacked.add(record)
            lanes.take(record)
        await asyncio.sleep(1)
        assert lanes.oldest_pending_age() == 1
        await lanes.close()
        assert sorted(ended, key=str) == [A, B]
        assert host.unacked == set()
        assert host.acknowledged == []
        assert host.faults == []
        assert lanes.oldest_pending_age() == 0

    run(program())


@pytest.mark.parametrize("error", [ValueError("a fault"), asyncio.CancelledError()])
def test_an_error_that_leaves_the_handler_is_reported_because_the_partition_cannot_go_on(error: BaseException) -> None:
    async def program() -> None:
        host = PartitionHost([[A]])

        async def handle(records: Sequence[SimulatedRecord], lease: Lease) -> None:
            raise error

        lanes = lanes_on(host, handle)
        lanes.take(SimulatedRecord(host, 0, A, 0, 1))
        await asyncio.sleep(1)
        assert len(host.faults) == 1
        assert host.acknowledged == []
        await lanes.close()

    run(program())
