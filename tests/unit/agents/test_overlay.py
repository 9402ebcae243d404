"""What a turn decides, without any store: entities, repeats, closing, and news that arrives late."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

from hypothesis import given
from hypothesis import strategies as st

from agents.overlay import Overlay
from graph.model import Candidates, FactRow, is_true
from topics.keys import DatasetKey
from topics.records import EntityMention, FactStatement, GraphWrite

KEY = DatasetKey("ada", "main")
NOW = datetime(2026, 6, 1, tzinfo=UTC)
ROOT = UUID(int=7)


def day(number: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=number)


def fact(
    subject: str, relation: str, object_: str, since: int | None = None, until: int | None = None, **more: object
) -> FactStatement:
    return FactStatement.model_validate(
        {
            "subject": subject,
            "subject_type": "person",
            "relation": relation,
            "object": object_,
            "object_type": "organization",
            "valid_at": None if since is None else day(since),
            "invalid_at": None if until is None else day(until),
            **more,
        }
    )


def write(seq: int, *statements: FactStatement, entities: tuple[EntityMention, ...] = (), at: int = 0) -> GraphWrite:
    return GraphWrite(
        user_id=KEY.user_id,
        dataset=KEY.dataset,
        run_id=uuid5(ROOT, f"run {seq}"),
        artifact_id=uuid5(ROOT, f"artifact {seq}"),
        seq=seq,
        text=f"text {seq}",
        valid_at=day(at),
        accepted_at=day(at),
        entities=entities,
        statements=statements,
        model_id="scripted/1",
    )


def new_overlay() -> Overlay:
    return Overlay(KEY, Candidates(0, None), NOW)


def objects_at(overlay: Overlay, at: datetime) -> list[str]:
    return [f.object for f in overlay.decided.new_facts.values() if is_true(f, at, NOW)]


def test_a_newer_fact_of_a_one_valued_relation_closes_the_older() -> None:
    overlay = new_overlay()
    first = overlay.decide(write(1, fact("Ada", "works_at", "Acme", 0)))
    second = overlay.decide(write(2, fact("Ada", "works_at", "Beta", 10)))
    assert second.closed_fact_ids == first.created_fact_ids
    assert objects_at(overlay, day(9)) == ["Acme"]
    assert objects_at(overlay, day(10)) == ["Beta"], (
        "intervals are half-open: the instant of change is the newer fact's"
    )


def test_an_older_fact_that_arrives_late_is_stored_closed_and_ends_nothing() -> None:
    overlay = new_overlay()
    overlay.decide(write(1, fact("Ada", "works_at", "Beta", 10)))
    late = overlay.decide(write(2, fact("Ada", "works_at", "Acme", 0)))
    assert late.closed_fact_ids == ()
    assert objects_at(overlay, day(5)) == ["Acme"]
    assert objects_at(overlay, day(50)) == ["Beta"]


def test_an_exact_repeat_makes_no_new_fact_but_a_further_source() -> None:
    overlay = new_overlay()
    first = overlay.decide(write(1, fact("Ada", "works_at", "Acme", 0)))
    again = overlay.decide(write(2, fact("ada", "Works At", " ACME ", 3)))
    assert again.restated_fact_ids == first.created_fact_ids
    assert again.created_fact_ids == ()
    assert (str(uuid5(ROOT, "artifact 2")), first.created_fact_ids[0]) in overlay.decided.states


def test_the_same_fact_after_it_ended_is_a_new_row() -> None:
    overlay = new_overlay()
    overlay.decide(write(1, fact("Ada", "works_at", "Acme", 0, 5)))
    again = overlay.decide(write(2, fact("Ada", "works_at", "Acme", 10)))
    assert len(again.created_fact_ids) == 1
    assert objects_at(overlay, day(7)) == []


def test_a_value_that_returns_has_an_interval_of_its_own() -> None:
    overlay = new_overlay()
    for seq, (company, since) in enumerate([("Acme", 0), ("Beta", 10), ("Acme", 20)], start=1):
        overlay.decide(write(seq, fact("Ada", "works_at", company, since)))
    assert [objects_at(overlay, day(d)) for d in (5, 15, 25)] == [["Acme"], ["Beta"], ["Acme"]]


def test_many_valued_and_unknown_relations_close_nothing() -> None:
    overlay = new_overlay()
    overlay.decide(write(1, fact("Ada", "uses", "Kafka", 0), fact("Ada", "hums", "tunes", 0)))
    later = overlay.decide(write(2, fact("Ada", "uses", "Neo4j", 5), fact("Ada", "hums", "songs", 5)))
    assert later.closed_fact_ids == ()


def test_facts_read_off_a_sentence_or_by_weak_rules_close_nothing() -> None:
    overlay = new_overlay()
    overlay.decide(write(1, fact("Ada", "has_role", "engineer", 0)))
    by_rules = overlay.decide(write(2, fact("Ada", "has_role", "director", 5, origin="rules")))
    by_sentence = overlay.decide(write(3, fact("Ada", "works_at", "Acme", 5, origin="sentence")))
    assert by_rules.closed_fact_ids == by_sentence.closed_fact_ids == ()


def test_an_ending_closes_what_stands_and_states_nothing() -> None:
    overlay = new_overlay()
    first = overlay.decide(write(1, fact("Ada", "works_at", "Acme", 0)))
    left = overlay.decide(write(2, fact("Ada", "works_at", "Acme", 9, ends=True)))
    assert left.closed_fact_ids == first.created_fact_ids
    assert left.created_fact_ids == ()
    assert objects_at(overlay, day(9)) == []


def test_an_ending_may_give_its_date_as_the_end() -> None:
    overlay = new_overlay()
    overlay.decide(write(1, fact("Ada", "works_at", "Acme", 0)))
    overlay.decide(write(2, fact("Ada", "works_at", "Acme", None, 9, ends=True), at=20))
    assert objects_at(overlay, day(8)) == ["Acme"]
    assert objects_at(overlay, day(9)) == []


def test_a_past_fact_without_a_start_leaves_the_present_alone_and_was_true_before_its_end() -> None:
    overlay = new_overlay()
    overlay.decide(write(1, fact("Ada", "works_at", "Beta", 10)))
    past = overlay.decide(write(2, fact("Ada", "works_at", "Acme", None, 5), at=20))
    assert past.closed_fact_ids == ()
    assert [objects_at(overlay, day(d)) for d in (-5000, 4, 5, 15, 30)] == [["Acme"], ["Acme"], [], ["Beta"], ["Beta"]]


def test_a_past_fact_begins_with_the_last_change_that_is_known() -> None:
    overlay = new_overlay()
    overlay.decide(write(1, fact("Ada", "works_at", "Old", 0, 3)))
    overlay.decide(write(2, fact("Ada", "works_at", "Acme", None, 9), at=20))
    assert [objects_at(overlay, day(d)) for d in (1, 4, 9)] == [["Old"], ["Acme"], []]


def test_a_past_end_of_what_stands_closes_it() -> None:
    overlay = new_overlay()
    first = overlay.decide(write(1, fact("Ada", "works_at", "Acme", 0)))
    until = overlay.decide(write(2, fact("Ada", "works_at", "Acme", None, 9), at=20))
    assert until.closed_fact_ids == first.created_fact_ids
    assert until.created_fact_ids == ()
    assert [objects_at(overlay, day(d)) for d in (8, 9)] == [["Acme"], []]


def test_an_interval_that_ends_before_it_begins_closes_nothing_and_is_never_true() -> None:
    overlay = new_overlay()
    overlay.decide(write(1, fact("Ada", "works_at", "Beta", 0)))
    odd = overlay.decide(write(2, fact("Ada", "works_at", "Acme", 9, 3)))
    assert odd.closed_fact_ids == ()
    assert [objects_at(overlay, day(d)) for d in (2, 5, 10)] == [["Beta"]] * 3


def test_a_repeat_that_brings_an_end_closes_the_open_fact() -> None:
    overlay = new_overlay()
    first = overlay.decide(write(1, fact("Ada", "works_at", "Acme", 0)))
    ended = overlay.decide(write(2, fact("Ada", "works_at", "Acme", 1, 8)))
    assert ended.closed_fact_ids == first.created_fact_ids
    assert objects_at(overlay, day(8)) == []


def test_a_text_may_contradict_itself_over_time() -> None:
    overlay = new_overlay()
    overlay.decide(write(1, fact("Ada", "works_at", "Beta", 10), fact("Ada", "works_at", "Acme", 0)))
    assert objects_at(overlay, day(5)) == ["Acme"]
    assert objects_at(overlay, day(15)) == ["Beta"]


def test_an_earlier_sighting_of_a_fact_is_a_row_up_to_the_known_one() -> None:
    overlay = new_overlay()
    overlay.decide(write(1, fact("Ada", "uses", "Kafka", 10)))
    overlay.decide(write(2, fact("Ada", "uses", "Kafka", 0)))
    assert [objects_at(overlay, day(d)) for d in (5, 15)] == [["Kafka"], ["Kafka"]], "no gap, no overlap"


def test_names_differ_by_type_but_a_mention_without_type_is_whoever_bears_the_name_alone() -> None:
    overlay = new_overlay()
    overlay.decide(write(1, entities=(EntityMention(name="Apple", type="organization"),)))
    overlay.decide(write(2, entities=(EntityMention(name="apple"),)))
    assert len(overlay.decided.new_entities) == 1
    overlay.decide(write(3, entities=(EntityMention(name="Apple", type="fruit"),)))
    assert len(overlay.decided.new_entities) == 2


def test_a_failed_text_has_a_receipt_without_effects() -> None:
    overlay = new_overlay()
    failed = write(1, fact("Ada", "works_at", "Acme", 0)).model_copy(update={"failed": "refused"})
    receipt = overlay.decide(failed)
    assert receipt.failed == "refused"
    assert not overlay.decided.new_facts
    assert not overlay.decided.new_entities


def test_the_same_turn_decided_again_gives_the_same_ids() -> None:
    writes = [write(1, fact("Ada", "works_at", "Acme", 0)), write(2, fact("Ada", "works_at", "Beta", 5))]
    one, two = new_overlay(), new_overlay()
    assert [one.decide(w) for w in writes] == [two.decide(w) for w in writes]


@given(
    changes=st.lists(
        st.tuples(st.integers(0, 40), st.sampled_from("ABCD")), min_size=1, max_size=12, unique_by=lambda c: c[0]
    ),
    at=st.integers(0, 45),
)
def test_in_order_of_their_dates_at_most_one_value_is_true_and_it_is_the_last(
    changes: list[tuple[int, str]], at: int
) -> None:
    overlay = new_overlay()
    for seq, (since, company) in enumerate(sorted(changes), start=1):
        overlay.decide(write(seq, fact("Ada", "works_at", company, since)))
    past = [company for since, company in sorted(changes) if since <= at]
    assert objects_at(overlay, day(at)) == past[-1:]


@given(splits=st.lists(st.booleans(), min_size=5, max_size=5), order=st.permutations(range(5)))
def test_the_cut_into_turns_does_not_matter(splits: list[bool], order: list[int]) -> None:
    """Deciding in one turn, or in several on top of what the earlier ones left, gives the same facts."""
    companies = ["Acme", "Beta", "Acme", "Gamma", "Beta"]
    writes = [write(n, fact("Ada", "works_at", companies[i], i * 3)) for n, i in enumerate(order, start=1)]
    whole = new_overlay()
    for each in writes:
        whole.decide(each)
    known: dict[str, FactRow] = {}
    entities = {}
    overlay = new_overlay()
    for each, cut in zip(writes, splits, strict=True):
        overlay.decide(each)
        known.update(overlay.facts)
        entities.update(overlay.entities)
        if cut:
            overlay = Overlay(KEY, Candidates(each.seq, NOW, tuple(entities.values()), tuple(known.values())), NOW)
    assert set(known) == set(whole.facts)
    assert {i: known[i].invalid_at for i in known} == {i: whole.facts[i].invalid_at for i in whole.facts}
