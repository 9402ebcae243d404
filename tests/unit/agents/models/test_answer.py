from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from agents.models.answer import answer_schema, name_of, normalise, read_answer, type_key
from agents.models.base import Extraction, Usage
from topics.errors import Retryable
from topics.records import EntityMention


def reading(raw: dict[str, Any], author: str = "") -> Extraction:
    return normalise(raw, model_id="m", usage=Usage(), author=author)


def fact(**changes: object) -> dict[str, Any]:
    return {"entities": [], "facts": [{"subject": "Ada", "relation": "works_at", "object": "Acme", **changes}]}


def test_an_entity_is_made_for_each_end_of_a_fact() -> None:
    found = reading(fact())
    assert [entity.name for entity in found.entities] == ["Ada", "Acme"]


def test_a_fact_takes_spelling_and_type_from_the_entities() -> None:
    found = reading({**fact(subject="ADA"), "entities": [{"name": "Ada", "type": "Person"}]})
    assert (found.statements[0].subject, found.statements[0].subject_type) == ("Ada", "person")


def test_repeated_entities_become_one_with_all_that_is_known() -> None:
    found = reading(
        {"entities": [{"name": "Ada"}, {"name": "ada", "type": "person", "description": "a poet's daughter"}]}
    )
    assert found.entities == (EntityMention(name="Ada", type="person", description="a poet's daughter"),)


@pytest.mark.parametrize(
    "change",
    [
        {"subject": ""},
        {"object": "  "},
        {"relation": "?!"},
        {"subject": None},
        {"object": "ada"},
        {"relation": ["x"]},
        {"subject": "\u200b"},
    ],
    ids=str,
)
def test_a_fact_without_an_end_or_a_relation_is_dropped_alone(change: dict[str, Any]) -> None:
    raw = fact(**change)
    raw["facts"] += [{"subject": "Bob", "relation": "likes", "object": "tea"}, "no fact", None, 7]
    assert [s.subject for s in reading(raw).statements] == ["Bob"]


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        ("Works At", "works_at"),
        ("works-for", "works_at"),
        ("is_married_to", "married_to"),
        ("is friends with", "is_friends_with"),
        ("née", "née"),
    ],
)
def test_relations_are_stored_in_one_form(said: str, stored: str) -> None:
    assert reading(fact(relation=said)).statements[0].relation == stored


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("2025", datetime(2025, 1, 1, tzinfo=UTC)),
        ("2025-03", datetime(2025, 3, 1, tzinfo=UTC)),
        ("2025-03-04", datetime(2025, 3, 4, tzinfo=UTC)),
        ("2025-03-04T15:00:00Z", datetime(2025, 3, 4, 15, tzinfo=UTC)),
        ("2025-03-04T15:00:00+02:00", datetime(2025, 3, 4, 13, tzinfo=UTC)),
        ("2025-03-04T15:00", datetime(2025, 3, 4, 15, tzinfo=UTC)),
        ("2025-13-01", None),
        ("2025-02-31", None),
        ("last spring", None),
        ("0000", None),
        ("99999-01-01", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("", None),
        ("null", None),
        (2025, datetime(2025, 1, 1, tzinfo=UTC)),
    ],
    ids=str,
)
def test_dates_of_any_exactness_are_read_and_bad_ones_left_out(said: object, read: datetime | None) -> None:
    assert reading(fact(valid_at=said)).statements[0].valid_at == read


def test_an_interval_that_ends_before_it_begins_keeps_its_begin() -> None:
    statement = reading(fact(valid_at="2025", invalid_at="2024")).statements[0]
    assert (statement.valid_at, statement.invalid_at) == (datetime(2025, 1, 1, tzinfo=UTC), None)


def test_what_was_repaired_is_logged_by_count_and_without_the_text() -> None:
    with structlog.testing.capture_logs() as logs:
        reading(
            {"entities": [{"name": ""}], "facts": [{"subject": "secret"}, *fact(valid_at="some secret day")["facts"]]}
        )
    assert logs == [
        {
            "event": "model.answer.repaired",
            "log_level": "warning",
            "model_id": "m",
            "entities_dropped": 1,
            "facts_dropped": 1,
            "dates_dropped": 1,
        }
    ]


def test_i_is_the_author_under_the_name_that_the_caller_gave() -> None:
    found = reading(fact(subject="I"), author="Nora Quill")
    assert found.statements[0].subject == "Nora Quill"
    assert found.entities[0] == EntityMention(name="Nora Quill", type="person")


def test_an_author_who_says_nothing_of_himself_is_no_entity() -> None:
    assert [entity.name for entity in reading(fact(), author="Nora").entities] == ["Ada", "Acme"]


def test_the_same_fact_said_twice_is_kept_once() -> None:
    raw = fact()
    assert len(reading({**raw, "facts": raw["facts"] * 3}).statements) == 1


@pytest.mark.parametrize(
    "wrap", ["{}", "```json\n{}\n```", "Here you are:\n{}\nAnything else?"], ids=["plain", "fenced", "talking"]
)
def test_json_is_found_in_what_stands_around_it(wrap: str) -> None:
    text = wrap.replace("{}", json.dumps(fact()))
    assert len(read_answer(text, model_id="m", usage=Usage()).statements) == 1


@pytest.mark.parametrize("text", ["", "no", "[]", "{", '{"facts": 7}', '{"facts": [}'])
def test_what_is_no_answer_may_be_asked_again(text: str) -> None:
    with pytest.raises(Retryable):
        read_answer(text, model_id="m", usage=Usage())


@pytest.mark.parametrize("raw", [{}, {"facts": None}, {"entities": []}, {"other": 1}], ids=str)
def test_an_answer_without_lists_says_nothing(raw: dict[str, Any]) -> None:
    assert reading(raw) == Extraction((), (), "m", Usage())


def test_the_schema_is_closed_and_requires_all_it_names() -> None:
    schema = answer_schema()
    for part in (schema, *(schema["properties"][name]["items"] for name in ("entities", "facts"))):
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (" Org ", "organization"),
        ("PERSON", "person"),
        ("", "other"),
        ("x" * 50, "other"),
        ("work of art", "work_of_art"),
    ],
)
def test_types_are_short_lower_case_words(said: str, kept: str) -> None:
    assert type_key(said) == kept


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("subject", "relation", "object", "valid_at", "invalid_at", "ends"), anything)
        ),
        max_size=4,
    ),
    st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(("name", "type", "description"), anything)), max_size=4),
    st.text(max_size=10),
)
def test_whatever_a_model_answers_the_result_is_whole(facts: list[Any], entities: list[Any], author: str) -> None:
    found = reading({"facts": facts, "entities": entities}, author)
    names = [entity.name for entity in found.entities]
    assert len({name.casefold() for name in names}) == len(names)
    for statement in found.statements:
        assert {statement.subject, statement.object} <= set(names)
        assert statement.relation


@given(st.text())
def test_a_name_is_one_visible_line(text: str) -> None:
    name = name_of(text)
    assert name == name_of(name) or len(text) > 200
    assert "\n" not in name
