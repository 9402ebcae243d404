"""Turns: what becomes of a record whatever its stage, its log or its services do."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from agents.breaker import Breakers
from agents.contract import Done, Fenced, GaveUp, Hole, Result, RetryPolicy, RunNote, Stage, Turn
from agents.lanes import Abandoned
from agents.metrics import Metrics, StageMetrics
from agents.turns import Holes, TurnRunner
from graph.model import Fence
from tests.simulators.memory_log import MemoryLog
from tests.simulators.virtual_time import run
from topics.clock import SettableClock
from topics.codec import decode
from topics.envelope import Incoming, Outgoing
from topics.errors import Outage, Permanent, Refused, Retryable
from topics.ids import run_event_id
from topics.keys import DatasetKey, derived_id
from topics.records import DeadLetter, RememberRequest, RememberText, RunEvent
from topics.trace import trace_id

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
KEY = DatasetKey("ada", "main")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class HeldLease:
    """A lease on virtual time; `lost_at` is when the partition goes away."""

    def __init__(self, lost_at: float = 1e12) -> None:
        self.lost_at = lost_at
        self.finished = 0
        self.pauses: list[float] = []
        self.waiting: list[Incoming] = []

    def is_lost(self) -> bool:
        return asyncio.get_running_loop().time() >= self.lost_at

    def finish(self, count: int) -> None:
        self.finished = count

    def widen(self) -> Sequence[Incoming]:
        waiting, self.waiting = self.waiting, []
        return waiting

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        await asyncio.sleep(seconds)
        if self.is_lost():
            raise Abandoned


def request(number: int) -> Incoming:
    record = RememberRequest(
        user_id="ada",
        run_id=UUID(int=number),
        idempotency_key=f"k{number}",
        text=f"text {number}",
        reference_time=NOW,
        accepted_at=NOW,
    )
    return Incoming(
        "remember.requests",
        3,
        number,
        KEY.encode(),
        record.model_dump_json().encode(),
        (("traceparent", TRACE.encode()),),
    )


def done(record: RememberRequest) -> Done:
    text = RememberText(
        user_id=record.user_id,
        dataset=record.dataset,
        run_id=record.run_id,
        artifact_id=record.run_id,
        seq=1,
        text=record.text,
        valid_at=NOW,
        accepted_at=NOW,
    )
    sends = (Outgoing("remember.texts", text, derived_id("text", str(record.run_id)), "toy", NOW),)
    return Done(sends, RunNote(record.run_id, record.accepted_at, "queryable"))


Behaviour = Callable[[Turn[RememberRequest], int], Awaitable[None]]


class Bench:
    """One stage whose every run first does what `behave(turn, number of the run)` says."""

    def __init__(
        self,
        behave: Behaviour,
        *,
        log: MemoryLog | None = None,
        retry: RetryPolicy | None = None,
        give_up: Any = None,
        fence: Callable[[Incoming], Fence | None] = lambda incoming: Fence("p", 7),
    ) -> None:
        self.turns: list[list[int]] = []
        self.fences: list[Fence] = []
        self.log = log or MemoryLog()
        self.lease = HeldLease()
        self.metrics = Metrics()
        self.breakers = Breakers(asyncio.get_running_loop().time)
        self.holes = Holes()

        async def stage_run(turn: Turn[RememberRequest], deps: None) -> Sequence[Result]:
            self.turns.append([delivery.incoming.offset for delivery in turn.deliveries])
            self.fences.append(turn.fence)
            await behave(turn, len(self.turns))
            return [done(record) for record in turn.records]

        stage = Stage(
            "toy",
            reads="remember.requests",
            sends=("remember.texts",),
            run=stage_run,
            give_up=give_up,
            retry=retry or RetryPolicy(attempts=3),
            fenced=True,
        )
        self.runner: TurnRunner[None] = TurnRunner(
            stage,
            None,
            log=self.log,
            clock=SettableClock(NOW),
            breakers=self.breakers,
            holes=self.holes,
            metrics=StageMetrics(self.metrics, "toy"),
            fence=fence,
        )

    async def handle(self, *incomings: Incoming) -> None:
        await self.runner.run(incomings, self.lease, self.lease.widen)

    def letters(self) -> list[DeadLetter]:
        return [out.record for out in self.log.on("dead.letters") if isinstance(out.record, DeadLetter)]

    def events(self) -> list[tuple[int, str, str]]:
        """(run, run state, stage state), in order."""
        found = [out.record for out in self.log.on("remember.runs") if isinstance(out.record, RunEvent)]
        return [(event.run_id.int, event.state, event.stage.state if event.stage else "") for event in found]


async def well(turn: Turn[RememberRequest], run: int) -> None:
    """Nothing happens."""


def raising(error: BaseException, times: int = 10**9, *, only: int | None = None) -> Behaviour:
    """Raises on the first `times` runs; with `only`, when the record of that offset is in the turn."""

    async def behave(turn: Turn[RememberRequest], run: int) -> None:
        if run <= times and (only is None or only in {delivery.incoming.offset for delivery in turn.deliveries}):
            raise error

    return behave


def test_all_sends_and_run_events_of_a_turn_go_out_in_one_append_in_order() -> None:
    async def program() -> None:
        bench = Bench(well)
        await bench.handle(request(1), request(2))
        assert bench.turns == [[1, 2]]
        assert bench.fences == [Fence("p", 7)]
        (append,) = bench.log.appends
        assert [out.topic for out in append] == ["remember.texts", "remember.runs"] * 2
        assert bench.events() == [(1, "queryable", "succeeded"), (2, "queryable", "succeeded")]
        assert append[1].id == run_event_id(UUID(int=1), "toy", "succeeded")

    run(program())


def test_what_is_sent_continues_the_trace_with_a_span_of_its_own() -> None:
    async def program() -> None:
        bench = Bench(well)
        await bench.handle(request(1))
        for out in bench.log.records:
            assert trace_id(out.traceparent) == trace_id(TRACE)
            assert out.traceparent != TRACE

    run(program())


def test_an_undecodable_record_is_dead_lettered_and_its_neighbours_are_handled() -> None:
    async def program() -> None:
        bench = Bench(well)
        broken = Incoming("remember.requests", 3, 2, KEY.encode(), b"\xff", (("h", b"1"),))
        await bench.handle(request(1), broken, request(3))
        assert bench.turns == [[1, 3]]
        (letter,) = bench.letters()
        assert (letter.record_value, letter.record_key, letter.offset) == (b"\xff", KEY.encode(), 2)
        assert letter.record_headers == (("h", b"1"),)
        assert (letter.dataset, letter.error_code, letter.attempts) == ("main", "undecodable", 1)

    run(program())


def test_an_error_that_no_decoder_should_raise_is_a_dead_letter_that_tells_only_its_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def failing(incoming: Incoming) -> RememberRequest:
        if incoming.offset == 2:
            raise OverflowError("dear diary")
        return decode(incoming)  # type: ignore[return-value]

    async def program() -> None:
        bench = Bench(well)
        await bench.handle(request(1), request(2), request(3))
        assert bench.turns == [[1, 3]]
        (letter,) = bench.letters()
        assert (letter.offset, letter.error_code) == (2, "undecodable")
        assert "OverflowError" in letter.error
        assert "dear diary" not in letter.error

    monkeypatch.setattr("agents.turns.decode", failing)
    run(program())


def test_an_outage_is_waited_for_without_counting_attempts_and_only_one_turn_tries() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()

        async def behave(turn: Turn[RememberRequest], run: int) -> None:
            if loop.time() < 3600:
                raise Outage("neo4j", "away")

        bench = Bench(behave)
        leases = [HeldLease() for _ in range(4)]
        await asyncio.gather(*(bench.runner.run([request(n)], lease) for n, lease in enumerate(leases)))
        assert bench.letters() == []
        assert len(bench.turns) < 4 + 3600 / 4 + 10, "not every waiting turn asks for itself"
        assert len(bench.log.on("remember.texts")) == 4
        assert bench.breakers.away() == ()

    run(program())


def test_a_deadline_missed_while_a_service_is_away_counts_as_its_outage() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()

        async def behave(turn: Turn[RememberRequest], run: int) -> None:
            if loop.time() < 600:  # as a committer does: it waits, and its breaker is open
                bench.breakers.trip(Outage("neo4j", "away"))
                await asyncio.sleep(3600)

        bench = Bench(behave)
        await bench.handle(request(1))
        assert bench.letters() == []
        assert bench.log.on("remember.texts") != []

    run(program())


def test_a_missed_deadline_alone_is_an_attempt() -> None:
    async def program() -> None:
        async def behave(turn: Turn[RememberRequest], run: int) -> None:
            await asyncio.sleep(3600)

        bench = Bench(behave)
        await bench.handle(request(1))
        (letter,) = bench.letters()
        assert (letter.error_code, letter.attempts) == ("exhausted", 3)

    run(program())


def test_a_retryable_error_is_retried_in_place_and_obeys_the_asked_wait_up_to_a_cap() -> None:
    async def program() -> None:
        bench = Bench(raising(Retryable("busy", retry_after=timedelta(seconds=7)), times=1))
        await bench.handle(request(1))
        assert bench.turns == [[1], [1]]
        assert bench.lease.pauses == [7]
        bench = Bench(raising(Retryable("busy", retry_after=timedelta(days=1)), times=1))
        await bench.handle(request(1))
        assert bench.lease.pauses == [60]

    run(program())


def test_the_last_attempt_gives_up_with_a_dead_letter_and_a_failed_run() -> None:
    async def program() -> None:
        bench = Bench(raising(Retryable("busy")))
        await bench.handle(request(1))
        (letter,) = bench.letters()
        assert (letter.error_code, letter.attempts, letter.run_id) == ("exhausted", 3, UUID(int=1))
        assert bench.events() == [(1, "failed", "failed")]

    run(program())


@pytest.mark.parametrize("error", [Refused("bad"), Retryable("busy"), ValueError("a fault")])
def test_a_bad_record_among_several_fails_alone_and_order_is_kept(error: Exception) -> None:
    async def program() -> None:
        bench = Bench(raising(error, only=2))
        await bench.handle(request(1), request(2), request(3))
        assert [letter.offset for letter in bench.letters()] == [2]
        assert [event[:2] for event in bench.events() if event[2] != "started"] == [
            (1, "queryable"),
            (2, "failed"),
            (3, "queryable"),
        ]
        assert bench.lease.finished == 3

    run(program())


def test_an_unexpected_error_tells_its_type_and_place_but_not_its_words() -> None:
    async def program() -> None:
        bench = Bench(raising(ValueError("dear diary")))
        await bench.handle(request(1))
        (letter,) = bench.letters()
        assert letter.error_code == "bug"
        assert "ValueError" in letter.error
        assert "dear diary" not in letter.error

    run(program())


def test_what_a_stage_still_owes_is_sent_when_it_gives_up_however_long_that_takes() -> None:
    async def program() -> None:
        asked = 0

        async def give_up(turn: Turn[RememberRequest], error: Permanent, deps: None) -> GaveUp:
            nonlocal asked
            asked += 1
            if asked < 20:
                raise Outage("neo4j", "away")
            return GaveUp(error, sends=done(turn.records[0]).sends)

        bench = Bench(raising(Refused("bad")), give_up=give_up)
        await bench.handle(request(1))
        assert [out.topic for out in bench.log.appends[-1]] == ["remember.texts", "dead.letters", "remember.runs"]

    run(program())


def test_a_fenced_turn_is_abandoned_and_sends_nothing() -> None:
    async def program() -> None:
        bench = Bench(raising(Fenced("another owner")))
        with pytest.raises(Abandoned):
            await bench.handle(request(1), request(2))
        assert bench.log.appends == []

    run(program())


def test_a_hole_is_waited_for_for_ever_and_seen_meanwhile() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()

        async def behave(turn: Turn[RememberRequest], run: int) -> None:
            if loop.time() < 86_400:
                raise Hole("number 4 is missing")

        bench = Bench(behave)
        handling = asyncio.create_task(bench.handle(request(1)))
        await asyncio.sleep(3600)
        assert bench.holes.any()
        assert bench.holes.count("toy") == 1
        await handling
        assert not bench.holes.any()
        assert bench.letters() == []

    run(program())


class Numbers:
    """A store that takes records only in the order of their offsets, from 1 on, as the writer does; `bad` ones it never takes."""

    def __init__(self, *bad: int) -> None:
        self.applied = 0
        self.bad = bad

    async def behave(self, turn: Turn[RememberRequest], run: int) -> None:
        fresh = sorted(each.incoming.offset for each in turn.deliveries if each.incoming.offset > self.applied)
        self.require(fresh)
        if set(fresh) & set(self.bad):
            raise Refused("bad")
        self.applied = max(fresh, default=self.applied)

    async def give_up(self, turn: Turn[RememberRequest], error: Permanent, deps: None) -> GaveUp:
        number = turn.deliveries[0].incoming.offset
        self.require([number])
        self.applied = number
        return GaveUp(error)

    def require(self, numbers: Sequence[int]) -> None:
        for expected, number in enumerate(numbers, start=self.applied + 1):
            if number != expected:
                raise Hole(f"number {expected} is missing")


def test_a_hole_is_healed_by_its_missing_record_when_that_comes_behind_it() -> None:
    async def program() -> None:
        store = Numbers()
        bench = Bench(store.behave)
        with capture_logs() as logs:
            handling = asyncio.create_task(bench.handle(request(2), request(3)))
            await asyncio.sleep(100)
            assert bench.holes.counts() == {"toy": 1}
            assert bench.log.on("remember.texts") == []
            alarms = len([entry for entry in logs if entry["event"] == "lane.hole"])
            bench.lease.waiting = [request(5)]
            await asyncio.sleep(300)
            assert len([entry for entry in logs if entry["event"] == "lane.hole"]) > alarms
            bench.lease.waiting = [request(1), request(4)]
            await handling
        assert bench.turns[-1] == [2, 3, 5, 1, 4]
        assert store.applied == 5
        assert bench.holes.counts() == {}
        assert bench.letters() == []
        assert len(bench.log.on("remember.texts")) == 5

    run(program())


@pytest.mark.parametrize("bad", [1, 2, 3, 4])
def test_a_hole_is_healed_though_a_record_of_the_turn_is_bad(bad: int) -> None:
    async def program() -> None:
        store = Numbers(bad)
        bench = Bench(store.behave, give_up=store.give_up)
        bench.lease.waiting = [request(2), request(1)]
        async with asyncio.timeout(3600):
            await bench.handle(request(4), request(3))
        assert store.applied == 4
        assert [letter.offset for letter in bench.letters()] == [bad]
        assert bench.lease.finished == 4
        assert len(bench.log.on("remember.texts")) == 3

    run(program())


def test_a_bad_record_that_raises_before_the_hole_is_seen_waits_for_the_missing_one_too() -> None:
    async def program() -> None:
        store = Numbers()
        bench = Bench(raising(Refused("bad"), only=2), give_up=store.give_up)
        handling = asyncio.create_task(bench.handle(request(2)))
        await asyncio.sleep(100)
        assert bench.holes.any()
        assert bench.letters() == []
        bench.lease.waiting = [request(3)]
        store.applied = 1
        await handling
        assert [letter.offset for letter in bench.letters()] == [2]

    run(program())


def test_a_hole_is_forgotten_when_its_partition_goes_away() -> None:
    async def program() -> None:
        bench = Bench(raising(Hole("number 1 is missing")))
        bench.lease.lost_at = 100
        with pytest.raises(Abandoned):
            await bench.handle(request(2))
        assert not bench.holes.any()
        assert bench.log.on("remember.texts") == []

    run(program())


def test_a_turn_waits_until_its_partition_s_epoch_is_known() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()
        bench = Bench(well, fence=lambda incoming: Fence("p", 8) if loop.time() > 30 else None)
        await bench.handle(request(1))
        assert bench.fences == [Fence("p", 8)]
        assert loop.time() > 30

    run(program())


def test_sends_are_repeated_while_the_log_is_away_and_the_stage_does_not_run_again() -> None:
    async def program() -> None:
        loop = asyncio.get_running_loop()

        def trouble(records: Sequence[Outgoing]) -> None:
            if loop.time() < 600:
                raise Outage("kafka", "away")

        bench = Bench(well, log=MemoryLog(trouble))
        handling = asyncio.create_task(bench.handle(request(1)))
        await asyncio.sleep(300)
        assert bench.breakers.away() == ("kafka",)
        await handling
        assert bench.turns == [[1]]
        assert bench.breakers.away() == ()

    run(program())


def test_sends_are_given_up_when_the_partition_is_not_ours_any_more() -> None:
    async def program() -> None:
        def trouble(records: Sequence[Outgoing]) -> None:
            raise Outage("kafka", "away")

        bench = Bench(well, log=MemoryLog(trouble))
        bench.lease.lost_at = 100
        with pytest.raises(Abandoned):
            await bench.handle(request(1))

    run(program())


def test_a_send_that_the_log_refuses_fails_its_record_alone() -> None:
    async def program() -> None:
        def trouble(records: Sequence[Outgoing]) -> None:
            if any(out.topic == "remember.texts" and out.record.text == "text 2" for out in records):  # type: ignore[attr-defined]
                raise Refused("too large")

        bench = Bench(well, log=MemoryLog(trouble))
        await bench.handle(request(1), request(2), request(3))
        assert [letter.offset for letter in bench.letters()] == [2]
        assert len(bench.log.on("remember.texts")) == 2

    run(program())


def test_a_dead_letter_that_is_too_large_is_kept_without_its_bytes() -> None:
    async def program() -> None:
        def trouble(records: Sequence[Outgoing]) -> None:
            if any(isinstance(out.record, DeadLetter) and out.record.record_value for out in records):
                raise Refused("too large")

        bench = Bench(raising(Refused("bad")), log=MemoryLog(trouble))
        await bench.handle(request(1))
        (letter,) = bench.letters()
        assert letter.record_value is None
        assert letter.error.startswith("(bytes left out")

    run(program())


def owing(*texts: str) -> Any:
    """A `give_up` that still owes these texts."""

    async def give_up(turn: Turn[RememberRequest], error: Permanent, deps: None) -> GaveUp:
        (record,) = turn.records
        sends = [done(record.model_copy(update={"text": text})).sends[0] for text in texts]
        return GaveUp(
            error, tuple(sends), RunNote(record.run_id, record.accepted_at, "failed", fact_ids=(UUID(int=9),))
        )

    return give_up


@pytest.mark.parametrize("error", [Refused("too large"), OSError("a fault of the client")])
def test_a_send_that_the_log_never_takes_is_dropped_at_last_and_the_lane_goes_on(error: Exception) -> None:
    async def program() -> None:
        def trouble(records: Sequence[Outgoing]) -> None:
            for record in (out.record for out in records):
                if (isinstance(record, RememberText) and record.text == "huge") or getattr(record, "fact_ids", None):
                    raise error

        bench = Bench(raising(Refused("bad")), log=MemoryLog(trouble), give_up=owing("huge", "small"))
        with capture_logs() as logs:
            async with asyncio.timeout(3600):
                await bench.handle(request(1))
        (letter,) = bench.letters()
        assert (letter.offset, letter.record_value) == (1, None)
        assert bench.events() == [(1, "failed", "failed")]
        assert [out.record.text for out in bench.log.on("remember.texts")] == ["small"]  # type: ignore[attr-defined]
        assert [entry["topic"] for entry in logs if entry["event"] == "turn.send_dropped"] == ["remember.texts"]

    run(program())


def test_a_passing_fault_of_the_client_drops_no_send() -> None:
    async def program() -> None:
        def trouble(records: Sequence[Outgoing]) -> None:
            if asyncio.get_running_loop().time() < 0.5:
                raise OSError("a fault of the client")

        bench = Bench(raising(Refused("bad")), log=MemoryLog(trouble), give_up=owing("owed"))
        await bench.handle(request(1))
        assert [out.topic for out in bench.log.records] == ["remember.texts", "dead.letters", "remember.runs"]

    run(program())


def test_a_stage_that_takes_longer_says_that_it_has_started() -> None:
    async def program() -> None:
        async def behave(turn: Turn[RememberRequest], run: int) -> None:
            await asyncio.sleep(5)

        bench = Bench(behave)
        await bench.handle(request(1))
        assert bench.events() == [(1, "accepted", "started"), (1, "queryable", "succeeded")]

    run(program())


def test_a_cancellation_from_inside_a_client_is_an_error_like_others() -> None:
    async def program() -> None:
        bench = Bench(raising(asyncio.CancelledError(), times=1))
        await bench.handle(request(1))
        assert len(bench.log.on("remember.texts")) == 1

    run(program())


def test_one_by_one_stops_when_the_partition_is_lost_and_what_is_done_stays_done() -> None:
    async def program() -> None:
        async def behave(turn: Turn[RememberRequest], run: int) -> None:
            await asyncio.sleep(1)
            if len(turn.deliveries) > 1:
                raise Refused("one of them is bad")

        bench = Bench(behave)
        bench.lease.lost_at = 2.5
        with pytest.raises(Abandoned):
            await bench.handle(*(request(number) for number in range(1, 9)))
        assert bench.lease.finished == 2

    run(program())


def test_a_stage_that_answers_too_few_results_loses_nothing() -> None:
    async def program() -> None:
        bench = Bench(well)

        async def short(turn: Turn[RememberRequest], deps: None) -> Sequence[Result]:
            return []

        object.__setattr__(bench.runner._stage, "run", short)
        await bench.handle(request(1), request(2))
        assert [letter.error_code for letter in bench.letters()] == ["bug", "bug"]

    run(program())
