"""What every `LanguageModel` does, whoever reads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
import pytest_asyncio
from pydantic import SecretStr

from agents.models.anthropic_model import AnthropicModel
from agents.models.base import Extraction, LanguageModel, Passage
from agents.models.local.rules_model import RulesModel
from agents.models.openai_model import OpenAIModel
from agents.models.scripted import ScriptedModel
from tests.simulators.model_vendors import KEY, ModelVendors

REFERENCE = datetime(2025, 3, 12, 10, 30, tzinfo=UTC)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Case:
    """A model, and how to tell it a fact: scripted ones read a grammar, local ones plain English."""

    model: LanguageModel
    works_at: str
    """A template with {who} and {where}."""
    left: str
    since_2021: str

    async def read(self, text: str, author: str = "") -> Extraction:
        return await self.model.extract(Passage(text, REFERENCE, author=author))


LINES = ("{who} | works_at | {where}", "- {who} | works_at | {where}", "{who} | works_at | {where} | 2021-03")
PROSE = (
    "{who} works at {where}.",
    "{who} no longer works at {where}.",
    "{who} has worked at {where} since March 2021.",
)


@pytest_asyncio.fixture(loop_scope="module", scope="module", params=["anthropic", "openai", "local", "scripted"])
async def case(request: pytest.FixtureRequest) -> AsyncIterator[Case]:
    async with ModelVendors() as vendors:
        models: dict[str, LanguageModel] = {
            "anthropic": AnthropicModel(SecretStr(KEY), base_url=vendors.anthropic_url),
            "openai": OpenAIModel(SecretStr(KEY), base_url=vendors.openai_url),
            "local": RulesModel(),
            "scripted": ScriptedModel(),
        }
        yield Case(models[request.param], *(PROSE if request.param == "local" else LINES))
        for model in models.values():
            await model.close()


async def test_a_stated_fact_is_found(case: Case) -> None:
    found = await case.read(case.works_at.format(who="Tom Brown", where="Initech"))
    facts = [(s.subject, s.relation, s.object, s.ends) for s in found.statements]
    assert ("Tom Brown", "works_at", "Initech", False) in facts


async def test_each_end_of_each_fact_is_an_entity(case: Case) -> None:
    found = await case.read(case.works_at.format(who="Tom Brown", where="Initech"))
    names = {entity.name: entity.type for entity in found.entities}
    assert found.statements
    for statement in found.statements:
        assert names[statement.subject] == statement.subject_type
        assert names[statement.object] == statement.object_type


async def test_a_date_in_the_text_becomes_an_aware_instant(case: Case) -> None:
    found = await case.read(case.since_2021.format(who="Tom Brown", where="Initech"))
    assert [s.valid_at for s in found.statements if s.relation == "works_at"] == [datetime(2021, 3, 1, tzinfo=UTC)]


async def test_a_state_that_is_over_ends_and_states_nothing_new(case: Case) -> None:
    found = await case.read(case.left.format(who="Tom Brown", where="Initech"))
    assert [s.ends for s in found.statements if s.relation == "works_at"] == [True]


async def test_i_is_the_author(case: Case) -> None:
    found = await case.read(
        case.works_at.format(who="I", where="Initech").replace(
            "works", "work" if "|" not in case.works_at else "works"
        ),
        "Nora Quill",
    )
    assert ("Nora Quill", "works_at") in [(s.subject, s.relation) for s in found.statements]


@pytest.mark.parametrize("text", ["", "   \n\t ", "ok, thanks!", "👍", "..."], ids=repr)
async def test_a_text_that_says_nothing_gives_an_empty_extraction(case: Case, text: str) -> None:
    found = await case.read(text)
    assert (found.entities, found.statements) == ((), ())


@pytest.mark.parametrize(
    "text",
    [
        "\x00\x01\x02",
        "a" * 5_000,
        "\u202eevil\u202c \ufeff",
        "<script>alert(1)</script>",
        "😀" * 500,
        "| " * 200,
        "\n" * 1_000,
        "你好，世界。",
    ],
    ids=["control", "one-word", "invisible", "markup", "emoji", "bars", "lines", "chinese"],
)
async def test_odd_text_is_read_like_any_other(case: Case, text: str) -> None:
    found = await case.read(text)
    assert found.model_id == case.model.model_id


async def test_every_extraction_says_who_read(case: Case) -> None:
    assert "/" in case.model.model_id
    assert (await case.read("ok")).model_id == case.model.model_id


async def test_the_same_text_read_twice_gives_the_same(case: Case) -> None:
    text = case.works_at.format(who="Tom Brown", where="Initech")
    assert await case.read(text) == await case.read(text)


async def test_many_texts_at_once_each_get_their_own_answer(case: Case) -> None:
    people = [
        "Tom Brown",
        "Clara Jones",
        "Peter Miller",
        "Maria Lopez",
        "Frank Weber",
        "Julia Novak",
        "Samuel Reed",
        "Anna Berg",
    ]
    found = await asyncio.gather(*(case.read(case.works_at.format(who=who, where="Initech")) for who in people))
    assert [{s.subject for s in extraction.statements} for extraction in found] == [{who} for who in people]
