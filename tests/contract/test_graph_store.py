"""GraphStore: what every implementation must do. No test asks which one it holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from graph.model import Closure, Fence, Verdict, name_key
from graph.protocols import GraphStore
from tests.contract.backends import NEO4J, open_store
from tests.contract.graph_rows import (
    NOON,
    admission,
    admitted,
    day,
    entity,
    fact,
    fresh_key,
    fresh_partition,
    question,
    text_of,
    write,
)
from topics.errors import Permanent


@pytest.fixture(params=["memory", NEO4J])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[GraphStore]:
    async with open_store(request.param, request) as store:
        yield store


# ── epochs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_every_claim_of_a_partition_raises_its_epoch(store: GraphStore) -> None:
    one, other = fresh_partition(), fresh_partition()
    first = await store.raise_epochs([one, other])
    second = await store.raise_epochs([one])
    assert second[one] == first[one] + 1
    assert set(first) == {one, other}


async def test_claims_at_once_get_different_epochs(store: GraphStore) -> None:
    partition = fresh_partition()
    claims = await asyncio.gather(*(store.raise_epochs([partition]) for _ in range(8)))
    assert len({claim[partition] for claim in claims}) == 8


async def test_claiming_nothing_gives_nothing(store: GraphStore) -> None:
    assert await store.raise_epochs([]) == {}


# ── admit ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_texts_are_numbered_in_their_order_without_a_hole(store: GraphStore) -> None:
    key = fresh_key()
    first = await admitted(store, key, "a", "b")
    second = await admitted(store, key, "c")
    numbers = {**first.admitted, **second.admitted}
    assert [numbers[text_of(key, name).id].seq for name in "abc"] == [1, 2, 3]
    assert not any(one.known for one in numbers.values())


async def test_a_known_text_keeps_its_number_its_hash_and_its_time(store: GraphStore) -> None:
    key = fresh_key()
    await admitted(store, key, "a", "b")
    again = replace(text_of(key, "a"), request_hash="another", text="something else")
    (outcome,) = await store.admit([admission(key, [text_of(key, "new"), again], at=day(1))])
    known, new = outcome.admitted[again.id], outcome.admitted[text_of(key, "new").id]
    assert (known.seq, known.known, known.request_hash, known.created_at) == (1, True, "hash of a", NOON)
    assert (new.seq, new.known, new.created_at) == (3, False, day(1))


async def test_the_same_text_twice_in_a_plan_is_one(store: GraphStore) -> None:
    key = fresh_key()
    outcome = await admitted(store, key, "a", "a", "b")
    assert sorted(one.seq for one in outcome.admitted.values()) == [1, 2]


async def test_admissions_at_once_number_each_text_once(store: GraphStore) -> None:
    key = fresh_key()
    names = [[f"{batch}-{place}" for place in range(3)] for batch in range(6)]
    outcomes = await asyncio.gather(*(admitted(store, key, *batch) for batch in [*names, *names]))
    numbers = {id_: one.seq for outcome in outcomes for id_, one in outcome.admitted.items()}
    assert sorted(numbers.values()) == list(range(1, 19))
    assert sum(not one.known for outcome in outcomes for one in outcome.admitted.values()) == 18


async def test_datasets_of_one_call_are_numbered_apart(store: GraphStore) -> None:
    keys = sorted((fresh_key() for _ in range(3)), key=lambda key: key.dataset_id)
    outcomes = await store.admit([admission(key, [text_of(key, "a"), text_of(key, "b")]) for key in keys])
    for key, outcome in zip(keys, outcomes, strict=True):
        assert [outcome.admitted[text_of(key, name).id].seq for name in "ab"] == [1, 2]


async def test_who_lost_the_partition_admits_nothing(store: GraphStore) -> None:
    key, partition = fresh_key(), fresh_partition()
    mine = Fence(partition, (await store.raise_epochs([partition]))[partition])
    theirs = Fence(partition, (await store.raise_epochs([partition]))[partition])
    (refused,) = await store.admit([admission(key, [text_of(key, "a")], fence=mine)])
    (accepted,) = await store.admit([admission(key, [text_of(key, "b")], fence=theirs)])
    assert (refused.fenced, dict(refused.admitted)) == (True, {})
    assert accepted.admitted[text_of(key, "b").id].seq == 1


@pytest.mark.parametrize(
    "text",
    ["x" * 1024 * 1024, "wörd " * 200_000, "a\x00b\x00", "\U0001f600\ufeff\u202e\ufffe\ud7ff e\u0301", " \n\t "],
    ids=["1 MiB without a space", "1 MB of words", "NUL", "odd characters", "only spaces"],
)
async def test_any_text_is_stored_as_it_came(store: GraphStore, text: str) -> None:
    key = fresh_key()
    await store.admit([admission(key, [text_of(key, "text 1", text, title=text[:2000])])])
    await store.apply([write(key, 1)])
    (stored,) = await store.stored_writes(key, [1])
    assert stored.text == text
    assert stored.title == text[:2000]


# ── the fence ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_next_number_is_applied(store: GraphStore) -> None:
    key = fresh_key()
    await admitted(store, key, "text 1", "text 2")
    first, second = fact(key, "Ada", "works_at", "Acme"), fact(key, "Ada", "knows", "Initech", seq=2)
    assert [one.verdict for one in await store.apply([write(key, 1, facts=[first])])] == [Verdict.APPLIED]
    (outcome,) = await store.apply([write(key, 2, facts=[second])])
    assert (outcome.verdict, outcome.applied_seq) == (Verdict.APPLIED, 1)


async def test_a_write_that_is_there_is_skipped_and_changes_nothing(store: GraphStore) -> None:
    key = fresh_key()
    await admitted(store, key, "text 1")
    plan = write(key, 1, facts=[fact(key, "Ada", "works_at", "Acme")])
    await store.apply([plan])
    before = await store.stored_writes(key, [1])
    (outcome,) = await store.apply([replace(plan, applied_at=day(5))])
    assert (outcome.verdict, outcome.applied_seq) == (Verdict.SKIPPED, 1)
    assert await store.stored_writes(key, [1]) == before
    (seen,) = await store.candidates([question(key, slots=[("ada", "works_at")])])
    assert (len(seen.facts), seen.known_at) == (1, NOON)


async def test_a_turn_whose_beginning_is_there_is_not_applied_in_part(store: GraphStore) -> None:
    key = fresh_key()
    await admitted(store, key, "text 1", "text 2")
    await store.apply([write(key, 1)])
    (outcome,) = await store.apply([write(key, 1, last=2, facts=[fact(key, "Ada", "works_at", "Acme")])])
    assert (outcome.verdict, outcome.applied_seq) == (Verdict.PARTLY, 1)
    (seen,) = await store.candidates([question(key, names=["ada"])])
    assert (seen.applied_seq, seen.entities) == (1, ())


async def test_a_missing_number_before_it_is_a_hole(store: GraphStore) -> None:
    key = fresh_key()
    await admitted(store, key, "text 1", "text 2")
    (outcome,) = await store.apply([write(key, 2)])
    assert (outcome.verdict, outcome.applied_seq) == (Verdict.HOLE, 0)
    assert await store.stored_writes(key, [2]) == []


async def test_who_lost_the_partition_applies_nothing(store: GraphStore) -> None:
    key, partition = fresh_key(), fresh_partition()
    await admitted(store, key, "text 1")
    mine = Fence(partition, (await store.raise_epochs([partition]))[partition])
    theirs = Fence(partition, (await store.raise_epochs([partition]))[partition])
    plan = write(key, 1, facts=[fact(key, "Ada", "works_at", "Acme")])
    assert [one.verdict for one in await store.apply([replace(plan, fence=mine)])] == [Verdict.FENCED]
    assert [one.verdict for one in await store.apply([replace(plan, fence=theirs)])] == [Verdict.APPLIED]
    assert [one.verdict for one in await store.apply([replace(plan, fence=mine)])] == [Verdict.FENCED]


async def test_of_two_that_apply_the_same_number_at_once_one_does(store: GraphStore) -> None:
    key = fresh_key()
    await admitted(store, key, "text 1")
    plans = [write(key, 1, facts=[fact(key, "Ada", "works_at", "Acme")]) for _ in range(6)]
    outcomes = await asyncio.gather(*(store.apply([plan]) for plan in plans))
    verdicts = [one.verdict for (one,) in outcomes]
    assert verdicts.count(Verdict.APPLIED) == 1
    assert verdicts.count(Verdict.SKIPPED) == 5


async def test_a_turn_of_several_texts_is_one_plan(store: GraphStore) -> None:
    key = fresh_key()
    await admitted(store, key, "text 1", "text 2", "text 3")
    (outcome,) = await store.apply([write(key, 1, last=3, facts=[fact(key, "Ada", "works_at", "Acme")])])
    assert outcome.verdict is Verdict.APPLIED
    assert [one.receipt.seq for one in await store.stored_writes(key, [3, 1, 9, 2])] == [3, 1, 2]


async def test_each_plan_of_a_group_has_its_own_verdict(store: GraphStore) -> None:
    keys = sorted((fresh_key() for _ in range(3)), key=lambda key: key.dataset_id)
    for key in keys:
        await admitted(store, key, "text 1", "text 2")
    await store.apply([write(keys[0], 1)])
    outcomes = await store.apply([write(keys[0], 1), write(keys[1], 1), write(keys[2], 2)])
    assert [one.verdict for one in outcomes] == [Verdict.SKIPPED, Verdict.APPLIED, Verdict.HOLE]
    assert [len(await store.stored_writes(key, [1, 2])) for key in keys] == [1, 1, 0]


# ── plans that cannot be written ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_bad_plan_leaves_nothing_of_its_group(store: GraphStore) -> None:
    good, bad = sorted((fresh_key(), fresh_key()), key=lambda key: key.dataset_id)
    await admitted(store, good, "text 1")
    await admitted(store, bad, "text 1")
    plans = [
        write(good, 1, facts=[fact(good, "Ada", "works_at", "Acme")]),
        write(bad, 1, facts=[fact(bad, "Ada", "works_at", "Acme")], entities=[entity(bad, "Ada")]),
    ]
    with pytest.raises(Permanent):
        await store.apply(plans)
    for key in (good, bad):
        (seen,) = await store.candidates([question(key, names=["ada", "acme"], slots=[("ada", "works_at")])])
        assert (seen.applied_seq, seen.entities, seen.facts) == (0, (), ())
    assert [one.verdict for one in await store.apply(plans[:1])] == [Verdict.APPLIED]


async def test_closing_a_fact_that_is_not_there_refuses_the_plan(store: GraphStore) -> None:
    key, other = fresh_key(), fresh_key()
    await admitted(store, key, "text 1")
    await admitted(store, other, "text 1")
    theirs = fact(other, "Ada", "works_at", "Acme")
    await store.apply([write(other, 1, facts=[theirs])])
    for unknown in (fact(key, "Ada", "works_at", "Acme").id, theirs.id):
        with pytest.raises(Permanent):
            await store.apply([write(key, 1, closures=[Closure(unknown, day(1), day(1))])])
    (seen,) = await store.candidates([question(other, slots=[("ada", "works_at")])])
    assert [one.id for one in seen.facts] == [theirs.id]


async def test_two_plans_of_a_dataset_in_a_group_are_refused(store: GraphStore) -> None:
    key = fresh_key()
    await admitted(store, key, "text 1", "text 2")
    with pytest.raises(Permanent):
        await store.apply([write(key, 1), write(key, 2)])
    with pytest.raises(Permanent):
        await store.admit([admission(key, [text_of(key, "x")]), admission(key, [text_of(key, "y")])])


async def test_no_plans_are_no_work(store: GraphStore) -> None:
    assert [list(await store.apply([])), list(await store.admit([])), list(await store.candidates([]))] == [[], [], []]
    assert list(await store.stored_writes(fresh_key(), [])) == []


# ── candidates ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_new_dataset_has_no_candidates(store: GraphStore) -> None:
    (seen,) = await store.candidates([question(fresh_key(), names=["ada"], slots=[("ada", "works_at")])])
    assert (seen.applied_seq, seen.known_at, seen.entities, seen.facts) == (0, None, (), ())


async def test_entities_are_found_by_name_whatever_their_type(store: GraphStore) -> None:
    key = fresh_key()
    await admitted(store, key, "text 1")
    rows = [entity(key, "Mercury", "planet"), entity(key, "MERCURY", "company"), entity(key, "Venus", "planet")]
    await store.apply([write(key, 1, entities=rows)])
    (seen,) = await store.candidates([question(key, names=["mercury"])])
    assert {(one.name, one.type) for one in seen.entities} == {("Mercury", "planet"), ("MERCURY", "company")}


async def test_facts_are_found_by_slot_and_by_triple(store: GraphStore) -> None:
    key = fresh_key()
    await admitted(store, key, "text 1")
    works, knows, other = (
        fact(key, "Ada", "works_at", "Acme"),
        fact(key, "Ada", "knows", "Initech"),
        fact(key, "Bob", "works_at", "Acme"),
    )
    await store.apply([write(key, 1, facts=[works, knows, other])])
    (seen,) = await store.candidates(
        [question(key, slots=[("ada", "works_at")], triples=[("ada", "knows", "initech"), ("ada", "knows", "acme")])]
    )
    assert {one.id for one in seen.facts} == {works.id, knows.id}
    assert [one for one in seen.facts if one.id == works.id] == [works]


async def test_a_fact_found_twice_comes_once(store: GraphStore) -> None:
    key = fresh_key()
    await admitted(store, key, "text 1")
    works = fact(key, "Ada", "works_at", "Acme")
    await store.apply([write(key, 1, facts=[works])])
    (seen,) = await store.candidates(
        [question(key, slots=[("ada", "works_at")], triples=[("ada", "works_at", "acme")])]
    )
    assert seen.facts == (works,)


async def test_facts_no_longer_believed_are_no_candidates(store: GraphStore) -> None:
    key = fresh_key()
    await admitted(store, key, "text 1", "text 2", "text 3")
    old, new = fact(key, "Ada", "works_at", "Acme"), fact(key, "Ada", "works_at", "Initech", seq=2, valid_at=day(2))
    late = fact(key, "Ada", "works_at", "Hooli", seq=3, valid_at=day(-9), invalid_at=NOON, expired_at=day(3))
    await store.apply([write(key, 1, facts=[old])])
    await store.apply([write(key, 2, facts=[new], closures=[Closure(old.id, day(2), day(3))], at=day(3))])
    await store.apply([write(key, 3, facts=[late], at=day(3))])
    (seen,) = await store.candidates(
        [
            question(
                key, slots=[("ada", "works_at")], triples=[("ada", "works_at", "acme"), ("ada", "works_at", "hooli")]
            )
        ]
    )
    assert [one.id for one in seen.facts] == [new.id]
    assert (seen.applied_seq, seen.known_at) == (3, day(3))
    (stored,) = await store.stored_writes(key, [2])
    closed = stored.facts[1]
    assert (closed.id, closed.invalid_at, closed.expired_at) == (old.id, day(2), day(3))


async def test_a_past_fact_with_its_own_end_is_still_a_candidate(store: GraphStore) -> None:
    key = fresh_key()
    await admitted(store, key, "text 1")
    past = fact(key, "Ada", "works_at", "Acme", valid_at=day(-9), invalid_at=day(-1), stated_invalid_at=day(-1))
    await store.apply([write(key, 1, facts=[past])])
    (seen,) = await store.candidates([question(key, triples=[("ada", "works_at", "acme")])])
    assert seen.facts == (past,)


async def test_datasets_with_the_same_names_know_nothing_of_each_other(store: GraphStore) -> None:
    mine, theirs = sorted((fresh_key(), fresh_key()), key=lambda key: key.dataset_id)
    same_user = replace(mine, dataset="other")
    for key in (mine, theirs):
        await admitted(store, key, "text 1")
        await store.apply([write(key, 1, facts=[fact(key, "Ada", "works_at", "Acme")])])
    one, two, three = await store.candidates(
        [
            question(key, names=["ada"], slots=[("ada", "works_at")], triples=[("ada", "works_at", "acme")])
            for key in (mine, same_user, theirs)
        ]
    )
    assert [item.id for item in one.facts] == [fact(mine, "Ada", "works_at", "Acme").id]
    assert (two.applied_seq, two.entities, two.facts) == (0, (), ())
    assert [item.id for item in three.facts] == [fact(theirs, "Ada", "works_at", "Acme").id]


@pytest.mark.parametrize("name", ["A" * 20_000, "né\u0301e", "a/b", '"; DROP', "$name {x}", "\x00"])
async def test_any_name_and_relation_can_be_stored_and_found(store: GraphStore, name: str) -> None:
    key = fresh_key()
    await admitted(store, key, "text 1")
    row = fact(key, name, name, name)
    await store.apply([write(key, 1, facts=[row])])
    wanted = name_key(name)
    (seen,) = await store.candidates([question(key, slots=[(wanted, name)], triples=[(wanted, name, wanted)])])
    assert seen.facts == (row,)


# ── receipts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_write_can_be_told_again_with_its_rows_in_order(store: GraphStore) -> None:
    key = fresh_key()
    await admitted(store, key, "text 1", "text 2")
    stays, ends = fact(key, "Ada", "knows", "Acme"), fact(key, "Ada", "works_at", "Acme")
    begins = [fact(key, "Ada", "works_at", name, seq=2) for name in ("Hooli", "Initech")]
    await store.apply([write(key, 1, facts=[stays, ends])])
    plan = write(key, 2, facts=begins, restated=[stays], closures=[Closure(ends.id, day(1), day(2))], at=day(2))
    plan = replace(plan, receipts=(replace(plan.receipts[0], new_entity_ids=plan.receipts[0].entity_ids[1:]),))
    await store.apply([plan])
    (stored,) = await store.stored_writes(key, [2])
    assert stored.receipt == plan.receipts[0]
    assert [one.id for one in stored.facts] == [begins[0].id, begins[1].id, stays.id, ends.id]
    assert [one.id for one in stored.entities] == list(plan.receipts[0].entity_ids)
    assert (stored.applied_at, stored.valid_at, stored.accepted_at) == (day(2), NOON, NOON)
    assert stored.facts[3].expired_at == day(2)


async def test_a_failed_text_leaves_a_receipt_that_says_so(store: GraphStore) -> None:
    key = fresh_key()
    await admitted(store, key, "text 1")
    plan = write(key, 1)
    await store.apply([replace(plan, receipts=(replace(plan.receipts[0], failed="the model refused"),))])
    (stored,) = await store.stored_writes(key, [1])
    assert (stored.receipt.failed, stored.facts, stored.entities) == ("the model refused", (), ())
