from __future__ import annotations

import pytest

from graph.relations import RELATIONS, SENTENCE_RELATION, canonical, may_close, relation_of


def test_no_alias_is_a_relation_of_its_own_or_of_two() -> None:
    aliases = [alias for row in RELATIONS.values() for alias in row.aliases]
    assert len(set(aliases)) == len(aliases)
    assert not set(aliases) & set(RELATIONS)


@pytest.mark.parametrize("name", RELATIONS)
def test_each_name_is_its_own_canonical_form_and_has_a_sentence(name: str) -> None:
    assert canonical(name) == name
    assert relation_of(name).sentence("Ada", "Acme {x}").endswith(".")


@pytest.mark.parametrize(
    ("said", "stored"),
    [
        ("Works for", "works_at"),
        ("EMPLOYED-BY", "works_at"),
        ("is_located_in", "located_in"),
        ("co-founded", "founded"),
        ("…", ""),
        ("is", "is"),
    ],
)
def test_other_names_lead_to_the_same_relation(said: str, stored: str) -> None:
    assert canonical(said) == stored


def test_an_unknown_relation_closes_nothing() -> None:
    assert not may_close("is_friends_with", "model")
    assert relation_of("is_friends_with").sentence("Ada", "Bob") == "Ada is friends with Bob."


def test_a_shared_sentence_closes_nothing_whatever_the_relation() -> None:
    assert not any(may_close(name, "sentence") for name in RELATIONS)
    assert not RELATIONS[SENTENCE_RELATION].single_valued


def test_rules_close_only_what_they_rarely_misread() -> None:
    assert {name for name in RELATIONS if may_close(name, "rules")} == {"works_at", "lives_in", "scheduled"}


def test_only_single_valued_relations_close() -> None:
    assert {name for name in RELATIONS if may_close(name, "model")} == {
        name for name, row in RELATIONS.items() if row.single_valued
    }
