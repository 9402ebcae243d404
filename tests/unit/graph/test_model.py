"""Laws of bi-temporal truth and of the fence."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from graph.model import FactRow, Verdict, entity_id, is_true, judge, name_key
from topics.keys import DatasetKey

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
TICK = timedelta(microseconds=1)
instants = st.integers(-5, 5).map(lambda days: NOON + timedelta(days=days))
ends = st.none() | instants


@st.composite
def facts(draw: st.DrawFn) -> FactRow:
    return FactRow(
        id="f",
        subject_id="s",
        subject="Ada",
        relation="works_at",
        object_id="o",
        object="Acme",
        description="",
        valid_at=draw(instants),
        created_at=draw(instants),
        invalid_at=draw(ends),
        stated_invalid_at=draw(ends),
        expired_at=draw(ends),
        retracted_at=draw(ends),
    )


@given(facts(), instants, instants)
def test_nothing_is_true_before_it_began_or_was_known(fact: FactRow, as_of: datetime, known_at: datetime) -> None:
    if is_true(fact, as_of, known_at):
        assert fact.valid_at <= as_of
        assert fact.created_at <= known_at


@given(facts(), instants)
def test_intervals_are_half_open_in_the_world(fact: FactRow, known_at: datetime) -> None:
    fact = replace(
        fact, expired_at=None, retracted_at=None, created_at=known_at, stated_invalid_at=fact.valid_at + 2 * TICK
    )
    truths = [is_true(fact, fact.valid_at + offset * TICK, known_at) for offset in (-1, 0, 1, 2)]
    assert truths == [False, True, True, False]


@given(facts(), instants)
def test_belief_begins_with_the_instant_of_knowing(fact: FactRow, as_of: datetime) -> None:
    fact = replace(fact, valid_at=as_of, stated_invalid_at=None, expired_at=None, retracted_at=None)
    assert not is_true(fact, as_of, fact.created_at - TICK)
    assert is_true(fact, as_of, fact.created_at)


@given(facts(), instants, instants)
def test_a_closure_does_not_change_what_was_believed_before_it(fact: FactRow, as_of: datetime, end: datetime) -> None:
    open_ = replace(fact, invalid_at=fact.stated_invalid_at, expired_at=None)
    closed = replace(open_, invalid_at=end, expired_at=NOON)
    assert is_true(closed, as_of, NOON - TICK) == is_true(open_, as_of, NOON - TICK)


@given(facts(), instants)
def test_a_closure_ends_the_fact_from_the_instant_it_is_known(fact: FactRow, end: datetime) -> None:
    closed = replace(fact, invalid_at=end, expired_at=NOON)
    assert not is_true(closed, end, NOON)


@given(facts(), instants, instants)
def test_a_retracted_fact_was_never_true_from_then_on(fact: FactRow, as_of: datetime, known_at: datetime) -> None:
    retracted = replace(fact, retracted_at=NOON)
    kept = replace(fact, retracted_at=None)
    assert not is_true(retracted, as_of, max(known_at, NOON))
    assert is_true(retracted, as_of, NOON - TICK) == is_true(kept, as_of, NOON - TICK)


@given(st.integers(0, 9), st.integers(0, 3), st.integers(1, 9), st.integers(0, 4), st.integers(0, 3))
def test_only_the_next_number_of_the_owner_is_applied(
    applied: int, owner: int, first: int, length: int, epoch: int
) -> None:
    last = first + length
    verdict = judge(applied, owner, first=first, last=last, epoch=epoch)
    assert (verdict is Verdict.FENCED) == (owner > epoch)
    assert (verdict is Verdict.APPLIED) == (owner <= epoch and applied + 1 == first)
    if verdict is Verdict.SKIPPED:
        assert applied >= last
    if verdict is Verdict.PARTLY:
        assert first <= applied < last
    if verdict is Verdict.HOLE:
        assert applied + 1 < first


def test_names_are_compared_composed_lower_case_and_with_single_spaces() -> None:
    assert name_key("  Ren\u0065\u0301   Müller\n") == "ren\u00e9 müller"


def test_one_name_of_two_types_or_in_two_datasets_is_two_entities() -> None:
    home, work = DatasetKey("ada", "home"), DatasetKey("ada", "work")
    assert entity_id(home, "Mercury", "planet") == entity_id(home, "mercury ", "planet")
    assert (
        len(
            {
                entity_id(home, "Mercury", "planet"),
                entity_id(home, "Mercury", "company"),
                entity_id(work, "Mercury", "planet"),
            }
        )
        == 3
    )
