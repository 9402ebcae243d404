"""The stages under redelivery: whatever is delivered again, cut into whichever turns, after whichever crash, the effect is there once, in order.

A small deterministic host runs the real stages over a log in memory. It covers: a crash after the effect and before the sends, a crash after the
sends and before the acknowledgement, redelivery of any suffix, any cut into turns. It does not cover what only processes and brokers do: rebalances
and zombies are tested on the real services.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.bounds import MAX_NAME_CHARACTERS, MAX_STATEMENTS
from agents.contract import AnyStage, Delivery, Fenced, GaveUp, Hole, Turn
from agents.deps import Deps
from agents.models.scripted import HashedEmbedder, ScriptedModel
from agents.pipeline import STAGES
from graph.model import Fence, is_true
from graph.protocols import IndexRow
from tests.doubles.graph_store import MemoryGraphStore
from topics import ids
from topics.clock import SettableClock
from topics.codec import decode, encode
from topics.envelope import Incoming, Outgoing
from topics.errors import Permanent
from topics.keys import DatasetKey
from topics.records import GraphChange, RememberRequest

KEY = DatasetKey("ada", "main")
START = datetime(2026, 1, 1, tzinfo=UTC)
PARTITION = "log/group/topic/0"
PATH = [stage for stage in STAGES if stage.name in ("intake", "extract", "writer", "indexer")]


class Crash(Exception):
    """The process ends here."""


class Host:
    """One process after another over one log and one store; a stage's position moves only after its sends are on the log."""

    def __init__(self, choices: random.Random, crash_rate: float) -> None:
        self.choices, self.crash_rate, self.crashes_left = choices, crash_rate, 25
        self.log: defaultdict[str, list[Incoming]] = defaultdict(list)
        self.positions: defaultdict[str, int] = defaultdict(int)
        self.store = MemoryGraphStore()
        self.index: dict[str, IndexRow] = {}
        self.model = ScriptedModel()
        self.clock = SettableClock(START + timedelta(days=1000))

    def send(self, outgoing: Outgoing) -> None:
        encoded = encode(outgoing)
        offset = len(self.log[encoded.topic])
        self.log[encoded.topic].append(Incoming(encoded.topic, 0, offset, encoded.key, encoded.value, encoded.headers))

    def deps(self) -> Deps:
        embedder = HashedEmbedder()

        async def put(rows: object) -> None:
            for row in rows:  # type: ignore[attr-defined]
                self.index[row.id] = row

        async def nothing(events: object) -> None: ...

        store = self.store

        async def one(method: str, plan: object) -> object:
            self.clock.advance(timedelta(seconds=self.choices.choice([1, 0, -3])))
            return (await getattr(store, method)([plan]))[0]

        return Deps(
            clock=self.clock,
            log_id="log",
            model=self.model,
            embedder=embedder,
            store=store,
            admit=lambda plan: one("admit", plan),  # type: ignore[arg-type, return-value]
            candidates=lambda query: one("candidates", query),  # type: ignore[arg-type, return-value]
            apply=lambda plan: one("apply", plan),  # type: ignore[arg-type, return-value]
            embed=embedder.embed,
            index=put,
            record_runs=nothing,
        )

    def lag(self, stage: AnyStage) -> int:
        return len(self.log[stage.reads]) - self.positions[stage.name]

    def maybe_crash(self) -> None:
        if self.crashes_left and self.choices.random() < self.crash_rate:
            self.crashes_left -= 1
            raise Crash

    async def step(self, stage: AnyStage, fence: Fence) -> None:
        at = self.positions[stage.name]
        taken = self.log[stage.reads][at : at + self.choices.randint(1, 8)]
        turn = Turn(KEY, fence, tuple(Delivery(decode(incoming), incoming) for incoming in taken))
        results = await stage.run(turn, self.deps())
        self.maybe_crash()  # the effect is there, nothing was sent
        for result in results:
            for send in result.sends:
                self.send(send)
        self.maybe_crash()  # all was sent, nothing acknowledged
        self.positions[stage.name] += len(taken)

    async def run(self) -> None:
        fence = await self.claim()
        while waiting := [stage for stage in PATH if self.lag(stage)]:
            try:
                await self.step(self.choices.choice(waiting), fence)
            except Crash:
                fence = await self.claim()  # the next process begins where the last one acknowledged, or before
                for stage in PATH:
                    self.positions[stage.name] -= self.choices.randint(0, min(5, self.positions[stage.name]))

    async def claim(self) -> Fence:
        return Fence(PARTITION, (await self.store.raise_epochs([PARTITION]))[PARTITION])


def request(number: int, text: str, key: str = "") -> RememberRequest:
    idempotency_key = key or f"key-{number}"
    return RememberRequest(
        user_id=KEY.user_id,
        dataset=KEY.dataset,
        run_id=ids.run_id(KEY, "api", idempotency_key, text),
        idempotency_key=idempotency_key,
        request_hash=text,
        text=text,
        reference_time=START + timedelta(days=number),
        accepted_at=START + timedelta(days=number),
    )


def accept(host: Host, each: RememberRequest) -> None:
    host.send(
        Outgoing(
            "remember.requests",
            each,
            id=ids.sent_id("remember.requests", each.run_id),
            sender="api",
            time=each.accepted_at,
        )
    )


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), count=st.integers(1, 30), crash_rate=st.sampled_from([0.0, 0.2, 0.5]))
async def test_whatever_is_repeated_the_effect_is_there_once_and_in_order(
    seed: int, count: int, crash_rate: float
) -> None:
    choices = random.Random(seed)
    host = Host(choices, crash_rate)
    requests = [request(n, f"Build | has_status | version {n}\nAda | wrote | note {n}") for n in range(count)]
    for each in requests:
        accept(host, each)
        if choices.random() < 0.2:
            accept(host, choices.choice(requests[: requests.index(each) + 1]))  # a client that repeats
    await host.run()

    store = host.store
    assert {str(each.run_id) for each in requests} == {artifact.run_id for artifact, _ in store.artifacts.values()}
    assert sorted(admitted.seq for _, admitted in store.artifacts.values()) == list(range(1, count + 1))
    numbers = {artifact.run_id: admitted.seq for artifact, admitted in store.artifacts.values()}
    assert [numbers[str(each.run_id)] for each in requests] == list(range(1, count + 1)), "admission order"
    assert store.heads[KEY].applied_seq == count
    versions = sorted((f for f in store.facts.values() if f.relation == "has_status"), key=lambda f: f.seq)
    assert [f.object for f in versions] == [f"version {n}" for n in range(count)]
    for older, newer in itertools.pairwise(versions):
        assert older.invalid_at == newer.valid_at, "a chain without gap or overlap"
    assert versions[-1].invalid_at is None
    assert [
        f.object for f in versions if is_true(f, START + timedelta(days=5000), host.clock.now() + timedelta(days=1))
    ] == [f"version {count - 1}"]

    graph_rows = set(store.facts) | set(store.entities) | {str(ids.chunk_id(a, 0)) for a in store.artifacts}
    assert set(host.index) == graph_rows, "index and graph agree"
    by_id: dict[str, set[bytes]] = defaultdict(set)
    for incoming in host.log["graph.changes"]:
        by_id[dict(incoming.headers)["ce_id"].decode()].add(incoming.key or b"")
    assert len(by_id) == count, "changes repeat with the same ids"
    known_at = [store.receipts[KEY, seq][1].applied_at for seq in range(1, count + 1)]
    assert known_at == sorted(known_at), "what we knew when never goes back, though the clock does"


async def test_everything_delivered_again_changes_nothing_and_asks_no_model() -> None:
    host = Host(random.Random(1), 0.0)
    for n in range(20):
        accept(host, request(n, f"Build | has_status | version {n}"))
    await host.run()
    facts, index, calls = dict(host.store.facts), dict(host.index), host.model.calls
    told = {}
    for incoming in host.log["graph.changes"]:
        change = decode(incoming)
        assert isinstance(change, GraphChange)
        told[change.seq] = [(fact.id, fact.change) for fact in change.facts]
    first_ids = {dict(i.headers)["ce_id"] for i in host.log["graph.changes"]}
    host.positions.clear()
    before = len(host.log["graph.changes"])
    await host.run()
    assert host.store.facts == facts
    assert host.index.keys() == index.keys()
    assert all(np.array_equal(host.index[row].vector, index[row].vector) for row in index)
    assert host.model.calls == calls
    again = host.log["graph.changes"][before:]
    assert {dict(i.headers)["ce_id"] for i in again} == first_ids
    for incoming in again:
        change = decode(incoming)
        assert isinstance(change, GraphChange)
        assert [(f.id, f.change) for f in change.facts] == told[change.seq]


async def test_a_used_key_with_another_request_is_rejected_and_the_first_stays() -> None:
    host = Host(random.Random(1), 0.0)
    fence = await host.claim()
    accept(host, request(1, "first", key="same"))
    accept(host, request(2, "second", key="same"))
    (intake,) = [stage for stage in STAGES if stage.name == "intake"]
    turn = Turn(KEY, fence, tuple(Delivery(decode(i), i) for i in host.log["remember.requests"]))
    first, second = await intake.run(turn, host.deps())
    assert first.note is not None
    assert first.note.state == "queryable"
    assert second.note is not None
    assert (second.note.state, second.note.error_code, second.sends) == ("rejected", "key_conflict", ())
    assert len(host.store.artifacts) == 1


async def test_a_missing_number_stops_the_lane() -> None:
    host = Host(random.Random(1), 0.0)
    for n in range(3):
        accept(host, request(n, f"Build | has_status | version {n}"))
    fence = await host.claim()
    intake, extract, writer, _ = PATH
    for stage in (intake, extract):
        while host.lag(stage):
            await host.step(stage, fence)
    lost = host.log["graph.writes"].pop(1)
    turn = Turn(KEY, fence, tuple(Delivery(decode(i), i) for i in host.log["graph.writes"]))
    with pytest.raises(Hole, match="number 2 is missing"):
        await writer.run(turn, host.deps())
    assert host.store.heads.get(KEY) is None, "nothing behind a hole is written, and here nothing before it either"
    whole = Turn(KEY, fence, (turn.deliveries[0], Delivery(decode(lost), lost), turn.deliveries[1]))
    assert len(await writer.run(whole, host.deps())) == 3


async def test_a_worker_that_lost_its_partition_writes_nothing() -> None:
    host = Host(random.Random(1), 0.0)
    accept(host, request(1, "Build | has_status | version 1"))
    old = await host.claim()
    intake, extract, writer, _ = PATH
    await host.step(intake, old)
    await host.step(extract, old)
    await host.claim()
    turn = Turn(KEY, old, tuple(Delivery(decode(i), i) for i in host.log["graph.writes"]))
    with pytest.raises(Fenced):
        await writer.run(turn, host.deps())
    assert not host.store.facts
    late = Turn(KEY, old, tuple(Delivery(decode(i), i) for i in host.log["remember.requests"]))
    with pytest.raises(Fenced):
        await intake.run(late, host.deps())


async def test_a_text_that_the_model_refuses_lets_its_followers_pass() -> None:
    host = Host(random.Random(1), 0.0)
    texts = [
        "Build | has_status | version 0",
        "! permanent\nBuild | has_status | never",
        "Build | has_status | version 2",
    ]
    for n, text in enumerate(texts):
        accept(host, request(n, text))
    fence = await host.claim()
    intake, extract, writer, indexer = PATH
    while host.lag(intake):
        await host.step(intake, fence)
    turn = Turn(KEY, fence, tuple(Delivery(decode(i), i) for i in host.log["remember.texts"]))
    results = await extract.run(turn, host.deps())
    refused = results[1]
    assert isinstance(refused, GaveUp)
    assert refused.note is not None
    assert refused.note.state == "failed"
    for result in results:
        for send in result.sends:
            host.send(send)
    for stage in (writer, indexer):
        while host.lag(stage):
            await host.step(stage, fence)
    assert host.store.heads[KEY].applied_seq == 3
    assert sorted(f.object for f in host.store.facts.values()) == ["version 0", "version 2"]
    texts_found = [row for row in host.index.values() if row.collection == "Chunk"]
    assert len(texts_found) == 3, "the text itself stays, and is found"


async def test_a_turn_of_many_facts_is_written_in_several_transactions_and_each_fits_its_topic() -> None:
    host = Host(random.Random(1), 0.0)
    fence = await host.claim()
    for n in range(3):
        lines = "\n".join(f"Person {n}-{i} | knows | Person {n}-{i + 1}" for i in range(1500))
        accept(host, request(n, lines))
    intake, extract, writer, indexer = PATH
    for stage in (intake, extract):
        while host.lag(stage):
            await host.step(stage, fence)
    turn = Turn(KEY, fence, tuple(Delivery(decode(i), i) for i in host.log["graph.writes"]))
    results = await writer.run(turn, host.deps())
    assert [len(result.sends) for result in results] == [1, 1, 1]
    plans = {id(plan) for _, plan in host.store.receipts.values()}
    assert len(plans) > 1
    assert host.store.heads[KEY].applied_seq == 3
    for result in results:
        host.send(result.sends[0])
        change = result.sends[0].record
        assert isinstance(change, GraphChange)
        assert not change.vectors, "so many vectors do not travel; the indexer makes them"
    while host.lag(indexer):
        await host.step(indexer, fence)
    indexed = {row.id for row in host.index.values() if row.collection == "Fact"}
    assert indexed == set(host.store.facts)
    assert len(indexed) >= 4500


async def test_what_no_graph_should_hold_is_left_out_and_the_text_goes_on() -> None:
    host = Host(random.Random(1), 0.0)
    fence = await host.claim()
    lines = [f"Ada | knows | Person {i}" for i in range(MAX_STATEMENTS + 500)]
    accept(host, request(0, "\n".join(["Ada | knows | " + "x" * 3000, *lines])))
    for stage in PATH:
        while host.lag(stage):
            await host.step(stage, fence)
    assert len(host.store.facts) == MAX_STATEMENTS
    assert max(len(entity.name) for entity in host.store.entities.values()) <= MAX_NAME_CHARACTERS


async def test_a_text_that_got_its_number_before_it_failed_leaves_no_hole() -> None:
    host = Host(random.Random(1), 0.0)
    fence = await host.claim()
    accept(host, request(0, "Build | has_status | lost"))
    accept(host, request(1, "Build | has_status | kept"))
    intake = PATH[0]
    assert intake.give_up is not None
    first, second = (Delivery(decode(i), i) for i in host.log["remember.requests"])
    gone = await intake.give_up(Turn(KEY, fence, (first,)), Permanent("cannot be sent"), host.deps())
    (kept,) = await intake.run(Turn(KEY, fence, (second,)), host.deps())
    for result in (gone, kept):
        for send in result.sends:
            host.send(send)
    for stage in PATH[1:]:
        while host.lag(stage):
            await host.step(stage, fence)
    assert gone.note is not None
    assert gone.note.state == "failed"
    assert [f.object for f in host.store.facts.values()] == ["kept"]
    assert host.store.heads[KEY].applied_seq == 2
