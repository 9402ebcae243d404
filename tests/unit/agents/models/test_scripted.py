from __future__ import annotations

from datetime import UTC, datetime

import pytest

from agents.models.base import Extraction, Passage
from agents.models.scripted import HashedEmbedder, ScriptedModel, hashed
from topics.errors import NeedsReauth, Outage, Permanent, Retryable

NOW = datetime(2025, 3, 12, tzinfo=UTC)


async def read(text: str, author: str = "") -> Extraction:
    return await ScriptedModel().extract(Passage(text, NOW, author=author))


async def test_a_line_is_a_fact_with_its_times() -> None:
    (statement,) = (await read("Ada | works_at | Acme | 2025-01-02 | 2025-06-30")).statements
    assert (statement.valid_at, statement.invalid_at) == (
        datetime(2025, 1, 2, tzinfo=UTC),
        datetime(2025, 6, 30, tzinfo=UTC),
    )


async def test_a_start_may_be_left_empty() -> None:
    (statement,) = (await read("Ada | works_at | Acme | | 2025-06-30")).statements
    assert (statement.valid_at, statement.invalid_at) == (None, datetime(2025, 6, 30, tzinfo=UTC))


async def test_a_dash_ends_a_fact() -> None:
    (statement,) = (await read("- Ada | works_at | Acme | 2025-06-30")).statements
    assert statement.ends
    assert statement.invalid_at == datetime(2025, 6, 30, tzinfo=UTC)


async def test_types_and_entities_without_facts() -> None:
    found = await read("Ada:person | works_at | Acme:organization\n= Bob Stone:person | a baker\n= Oslo")
    assert {entity.name: (entity.type, entity.description) for entity in found.entities} == {
        "Ada": ("person", ""),
        "Acme": ("organization", ""),
        "Bob Stone": ("person", "a baker"),
        "Oslo": ("other", ""),
    }


async def test_prose_around_the_lines_says_nothing() -> None:
    found = await read("Minutes of Monday\n\nAda | likes | tea\n\nSee you; a | b is no fact.")
    assert [(s.subject, s.object) for s in found.statements] == [("Ada", "tea")]


async def test_json_is_taken_as_a_models_answer() -> None:
    found = await read('{"facts": [{"subject": "I", "relation": "Works at", "object": "Acme"}]}', author="Nora")
    assert [(s.subject, s.relation) for s in found.statements] == [("Nora", "works_at")]


@pytest.mark.parametrize(("kind", "error"), [("outage", Outage), ("retryable", Retryable)])
async def test_a_text_can_ask_to_fail_some_times(kind: str, error: type[Exception]) -> None:
    model, passage = ScriptedModel(), Passage(f"! {kind} 2\nAda | likes | tea", NOW)
    for _ in range(2):
        with pytest.raises(error):
            await model.extract(passage)
    assert (await model.extract(passage)).statements
    assert model.calls == 3


@pytest.mark.parametrize(("kind", "error"), [("permanent", Permanent), ("needs_reauth", NeedsReauth)])
async def test_a_text_can_ask_to_fail_for_good(kind: str, error: type[Exception]) -> None:
    model = ScriptedModel()
    for _ in range(3):
        with pytest.raises(error):
            await model.extract(Passage(f"! {kind}", NOW))


async def test_an_exclamation_in_prose_is_no_order() -> None:
    assert await read("Outage! Well done, outage 2 !") == Extraction(model_id=ScriptedModel().model_id)


async def test_a_function_may_take_the_place_of_the_grammar() -> None:
    answer = Extraction(model_id="mine")
    model = ScriptedModel(lambda _: answer, keep=True)
    assert await model.extract(Passage("x", NOW)) is answer
    assert [passage.text for passage in model.passages] == ["x"]


def test_hashed_vectors_are_the_same_in_every_process() -> None:
    row = hashed(["Ada works at Acme"])[0]
    assert (int(row.argmax()), round(float(row.max()), 4)) == (22, 0.2294)


async def test_calls_of_the_embedder_are_counted() -> None:
    embedder = HashedEmbedder()
    await embedder.embed(["a"])
    assert embedder.calls == 1
