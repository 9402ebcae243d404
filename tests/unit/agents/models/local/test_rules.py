"""The rules on labelled sentences and on what they must leave alone. spaCy is loaded once, in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agents.models.base import Extraction, Passage
from agents.models.local.reader import BLOCK_CHARS, PAIRS, read
from agents.models.local.rules_model import package

if TYPE_CHECKING:
    from spacy.language import Language

GOLD = Path(__file__).parents[4] / "fixtures" / "gold" / "plain_sentences.json"
NOW = datetime(2025, 3, 12, 10, 30, tzinfo=UTC)
ENTITY_FLOOR, FACT_FLOOR, DATE_FLOOR = 0.85, 0.70, 0.70

Reading = Callable[[str], Extraction]


@pytest.fixture(scope="module")
def reading() -> Reading:
    import spacy

    nlp: Language = spacy.load(package())
    return lambda text: read(nlp, Passage(text, NOW, author="Nora Quill"), "local/test")


def facts_of(found: Extraction) -> set[tuple[str, str, str, bool]]:
    return {(s.subject, s.relation, s.object, s.ends) for s in found.statements if s.origin == "rules"}


@dataclass
class Score:
    right: int = 0
    wrong: int = 0
    missed: int = 0

    def add(self, found: set[Any], expected: set[Any], allowed: AbstractSet[Any] = frozenset()) -> None:
        self.right += len(found & expected)
        self.wrong += len(found - expected - allowed)
        self.missed += len(expected - found)

    @property
    def f(self) -> float:
        return 2 * self.right / max(1, 2 * self.right + self.wrong + self.missed)

    def __str__(self) -> str:
        precision = self.right / max(1, self.right + self.wrong)
        return f"P {precision:.2f}  R {self.right / max(1, self.right + self.missed):.2f}  F {self.f:.2f}"


@pytest.mark.parametrize("kept_back", [False, True], ids=["seen", "kept back"])
def test_plain_sentences_are_read_well_enough(reading: Reading, kept_back: bool) -> None:
    sentences = [row for row in json.loads(GOLD.read_text())["sentences"] if row.get("kept_back", False) == kept_back]
    entities, facts, dates = Score(), Score(), Score()
    for row in sentences:
        found = reading(row["text"])
        expected = {
            (*fact[:3], (fact[3] if len(fact) > 3 else {}).get("ends", False)): fact[3] if len(fact) > 3 else {}
            for fact in row["facts"]
        }
        nouns = {name.casefold() for fact in expected for name in (fact[0], fact[2])}
        names = {entity.name.casefold() for entity in found.entities if entity.type not in ("date", "role")}
        entities.add(names, {name.casefold() for name in row["entities"]}, nouns)
        facts.add(facts_of(found), set(expected))
        for statement in found.statements:
            options = expected.get((statement.subject, statement.relation, statement.object, statement.ends))
            if options is not None and statement.origin == "rules":
                told = {
                    (end, at.date().isoformat())
                    for end in ("valid_at", "invalid_at")
                    if (at := getattr(statement, end))
                }
                dates.add(told, {(end, options[end]) for end in ("valid_at", "invalid_at") if end in options})
    print(f"\n{len(sentences)} sentences\n  entities  {entities}\n  facts     {facts}\n  dates     {dates}")
    assert entities.f >= ENTITY_FLOOR
    assert facts.f >= FACT_FLOOR
    assert dates.f >= DATE_FLOOR


@pytest.mark.parametrize(
    "text",
    [
        "Peter Miller may join Acme.",
        "Peter Miller could be working at Acme.",
        "If Peter Miller works at Acme, call him.",
        "If Acme agrees, Peter Miller works at Globex.",
        "Unless it rains, Ada Lovelace lives in Paris.",
        "Peter Miller wants to live in Berlin.",
        "Peter Miller plans to leave Acme.",
        "Ada hopes that Peter Miller works at Acme.",
        "Does Peter Miller live in Berlin?",
        "Peter Miller does not work at Acme.",
        "Peter Miller never lived in Berlin.",
        "Maybe Peter Miller works at Acme.",
        "They left the room.",
        "The meeting is tomorrow.",
        "The launch review is no longer on Friday.",
        "The kickoff meeting is no longer scheduled for Monday.",
        "Tom Brown said that Clara Jones lived in Rome.",
    ],
)
def test_what_is_not_stated_as_true_gives_no_fact(reading: Reading, text: str) -> None:
    assert facts_of(reading(text)) == set()


def test_a_pronoun_is_the_last_one_named(reading: Reading) -> None:
    assert ("Paul Quist", "lives_in", "Bern", False) in facts_of(reading("Paul Quist joined Acme. He lives in Bern."))


def test_i_is_nobody_when_the_author_is_unknown(reading: Reading) -> None:
    import spacy

    found = read(spacy.load(package()), Passage("I live in Berlin.", NOW), "local/test")
    assert facts_of(found) == set()


def test_the_role_decides_the_type(reading: Reading) -> None:
    types = {entity.name: entity.type for entity in reading("Tom Brown works at Initech.").entities}
    assert types == {"Tom Brown": "person", "Initech": "organization"}


def test_names_in_one_sentence_are_linked_once_and_only_without_a_rule_fact(reading: Reading) -> None:
    found = reading("Tom Brown works at Initech with Clara Jones.")
    edges = [{s.subject, s.object} for s in found.statements if s.origin == "sentence"]
    assert {"Tom Brown", "Initech"} not in edges
    assert {"Tom Brown", "Clara Jones"} in edges
    assert all(s.relation == "mentioned_with" for s in found.statements if s.origin == "sentence")


def test_a_list_of_names_does_not_give_an_edge_for_each_pair(reading: Reading) -> None:
    people = ", ".join(
        f"{first} Miller" for first in ("Ada", "Tom", "Clara", "Peter", "Maria", "Frank", "Julia", "Anna", "Karl")
    )
    assert len([s for s in reading(f"We saw {people}.").statements if s.origin == "sentence"]) <= PAIRS


def test_the_fact_carries_its_sentence(reading: Reading) -> None:
    found = reading("Hello all. Tom Brown works at Initech. Bye.")
    assert [s.description for s in found.statements if s.origin == "rules"] == ["Tom Brown works at Initech."]


def test_a_text_longer_than_one_block_is_read_to_its_end(reading: Reading) -> None:
    filler = "Nothing happened on that day.\n" * (BLOCK_CHARS // 30 + 10)
    assert ("Tom Brown", "works_at", "Initech", False) in facts_of(reading(filler + "Tom Brown works at Initech."))


def test_no_sentence_runs_over_an_empty_line(reading: Reading) -> None:
    found = reading("Notes by Clara Jones\n\nTom Brown works at Initech.\n\n- Peter Miller lives in Bern.")
    assert facts_of(found) == {("Tom Brown", "works_at", "Initech", False), ("Peter Miller", "lives_in", "Bern", False)}
    assert [s for s in found.statements if s.origin == "sentence"] == []


def test_fenced_code_is_not_read(reading: Reading) -> None:
    assert reading("```python\nTom Brown works at Initech.\n```").entities == ()


def test_two_plain_nouns_make_no_fact(reading: Reading) -> None:
    assert facts_of(reading("The server uses a database.")) == set()


def test_addresses_and_code_are_no_names(reading: Reading) -> None:
    found = reading("https://example.com/x?y=1 foo@bar.com `import os` 12345 !!!")
    assert [entity.name for entity in found.entities if "@" in entity.name or "/" in entity.name] == []
