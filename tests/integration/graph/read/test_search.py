"""Search over the real graph and index."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
import pytest
from numpy.typing import NDArray

from graph.model import Closure, FactRow
from graph.protocols import IndexRow
from graph.read.search import Search
from graph.weaviate.connection import Server
from graph.weaviate.index import WeaviateIndex
from strandline.stack import Addresses
from tests.contract.backends import Graph, open_graph, weaviate_index
from tests.contract.graph_rows import NOON, admission, day, entity, fact, fresh_key, text_of, write
from topics.clock import SettableClock
from topics.errors import NotFound, Outage, Refused
from topics.ids import chunk_id
from topics.keys import DatasetKey

pytestmark = pytest.mark.connected

DIMENSION = 64
TICK = timedelta(microseconds=1)


def meaning(text: str) -> NDArray[np.float32]:
    """A bag of words as a vector: what shares words is near."""
    vector = np.full(DIMENSION, 1e-3, dtype=np.float32)
    for word in text.lower().replace(".", " ").split():
        vector[zlib.crc32(word.encode()) % DIMENSION] += 1.0
    return vector / np.linalg.norm(vector)


async def embed(text: str) -> NDArray[np.float32]:
    return meaning(text)


async def embedder_is_away(text: str) -> NDArray[np.float32]:
    raise Outage("embedder", "the embedder is away")


async def embedder_is_slow(text: str) -> NDArray[np.float32]:
    await asyncio.Event().wait()
    raise AssertionError


@dataclass
class World:
    """A graph and an index with one search over both."""

    graph: Graph
    index: WeaviateIndex
    clock: SettableClock

    @property
    def search(self) -> Search:
        return Search(self.graph.reader, self.index, embed, clock=self.clock)

    async def remember(
        self,
        key: DatasetKey,
        seq: int,
        text: str,
        *facts: FactRow,
        closures: tuple[Closure, ...] = (),
        at: datetime = NOON,
        valid_at: datetime = NOON,
    ) -> str:
        """One text through intake, writer and indexer; its id."""
        artifact = text_of(key, f"text {seq}", text, valid_at=valid_at)
        await self.graph.store.admit([admission(key, [artifact], at=at)])
        await self.graph.store.apply([write(key, seq, facts=facts, closures=closures, at=at)])
        rows = [IndexRow(key, "Fact", one.id, one.description, meaning(one.description)) for one in facts]
        names = {one.subject_id: one.subject for one in facts} | {one.object_id: one.object for one in facts}
        rows += [IndexRow(key, "Entity", id_, name, meaning(name)) for id_, name in names.items()]
        rows.append(IndexRow(key, "Chunk", str(chunk_id(artifact.id, 0)), text, meaning(text), artifact.id))
        await self.index.put(rows)
        return artifact.id


@pytest.fixture
async def world(services: Addresses, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    index = weaviate_index(services, prefix="Search", model_id="test/words", dimension=DIMENSION)
    await index.ensure()
    async with open_graph("neo4j", request) as graph:
        yield World(graph, index, SettableClock(day(30)))
    await index.close()


async def test_a_fact_is_found_with_its_times_and_its_text(world: World) -> None:
    key = fresh_key()
    row = fact(key, "Ada", "works_at", "Acme")
    text_id = await world.remember(key, 1, "Lunch with Ada: she is at Acme now.", row)
    page = await world.search.search(key, "where does ada work acme")
    hit = next(hit for hit in page.hits if hit.kind == "fact")
    assert (hit.id, hit.facts[0].subject, hit.facts[0].relation, hit.facts[0].object) == (
        row.id,
        "Ada",
        "works_at",
        "Acme",
    )
    assert (hit.facts[0].valid_at, hit.facts[0].created_at, hit.facts[0].invalid_at) == (NOON, NOON, None)
    assert [(one.artifact_id, one.text) for one in hit.sources] == [(text_id, "Lunch with Ada: she is at Acme now.")]
    assert {"fact.words", "fact.vector", "entity"} <= set(hit.found_by)
    assert (page.as_of, page.known_at, page.degraded) == (day(30), day(30), ())


async def test_a_text_is_found_before_it_is_read_or_indexed(world: World) -> None:
    key = fresh_key()
    artifact = text_of(key, "text 1", "The okapi escaped on Tuesday.")
    await world.graph.store.admit([admission(key, [artifact])])
    (hit,) = (await world.search.search(key, "okapi")).hits
    assert (hit.kind, hit.id, hit.facts, hit.found_by) == ("text", artifact.id, (), ("text.stored",))
    assert hit.sources[0].text == artifact.text


async def test_the_present_and_the_past_have_different_answers(world: World) -> None:
    key = fresh_key()
    old = fact(key, "Ada", "works_at", "Acme")
    new = replace(fact(key, "Ada", "works_at", "Hooli", seq=2, valid_at=day(10)), created_at=day(11))
    first = await world.remember(key, 1, "Ada works at Acme.", old)
    closure = Closure(old.id, day(10), day(11))
    second = await world.remember(key, 2, "Ada works at Hooli.", new, closures=(closure,), at=day(11), valid_at=day(10))

    async def answer(as_of: datetime | None = None, known_at: datetime | None = None) -> set[str]:
        page = await world.search.search(key, "ada works at", as_of=as_of, known_at=known_at)
        return {hit.id for hit in page.hits}

    assert await answer() == {new.id, second}
    assert await answer(as_of=day(10)) == {new.id, second}
    assert await answer(as_of=day(10) - TICK) == {old.id, first}
    assert await answer(as_of=day(20), known_at=day(11) - TICK) == {old.id, first}
    assert await answer(as_of=NOON - TICK) == set()
    assert await answer(known_at=NOON - TICK) == set()


async def test_a_text_none_of_whose_facts_is_true_is_left_out_and_one_without_facts_stays(world: World) -> None:
    key = fresh_key()
    ended = fact(key, "Ada", "works_at", "Acme", invalid_at=day(1), stated_invalid_at=day(1))
    await world.remember(key, 1, "The okapi was at Acme until Sunday.", ended)
    plain = await world.remember(key, 2, "The okapi has no facts.")
    later = await world.remember(key, 3, "The okapi comes in the far future.", valid_at=day(300))
    assert [hit.id for hit in (await world.search.search(key, "okapi")).hits] == [plain]
    found = (await world.search.search(key, "okapi", as_of=day(300))).hits
    assert {hit.id for hit in found} == {plain, later}


async def test_a_text_hit_shows_its_true_facts_only(world: World) -> None:
    key = fresh_key()
    true = fact(key, "Ada", "knows", "Acme")
    ended = fact(key, "Ada", "works_at", "Hooli", invalid_at=day(1), stated_invalid_at=day(1))
    text_id = await world.remember(key, 1, "Ada and the okapi.", true, ended)
    hit = next(hit for hit in (await world.search.search(key, "okapi")).hits if hit.kind == "text")
    assert (hit.id, [one.id for one in hit.facts]) == (text_id, [true.id])


async def test_datasets_are_apart(world: World) -> None:
    mine, other = fresh_key(), fresh_key()
    await world.remember(mine, 1, "Ada works at Acme.", fact(mine, "Ada", "works_at", "Acme"))
    await world.remember(other, 1, "An egret.")
    page = await world.search.search(other, "ada acme")
    assert not [hit for hit in page.hits if "Acme" in str(hit)]


async def test_an_unknown_dataset_is_not_found(world: World) -> None:
    with pytest.raises(NotFound) as caught:
        await world.search.search(fresh_key(), "ada")
    assert caught.value.field == "dataset"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 101}, "limit"),
        ({"query": "  "}, "query"),
        ({"cursor": "nonsense"}, "cursor"),
        ({"as_of": datetime(2025, 1, 1)}, "as_of"),  # noqa: DTZ001
        ({"known_at": datetime(2025, 1, 1)}, "known_at"),  # noqa: DTZ001
    ],
)
async def test_a_bad_argument_is_refused_by_name(world: World, arguments: dict[str, object], field: str) -> None:
    given = {"query": "okapi", **arguments}
    with pytest.raises(Refused) as caught:
        await world.search.search(fresh_key(), **given)  # type: ignore[arg-type]
    assert caught.value.field == field


async def test_pages_neither_repeat_nor_skip_and_keep_the_times_of_the_first(world: World) -> None:
    key = fresh_key()
    for seq in range(1, 8):
        await world.remember(key, seq, f"Okapi number {seq}.", fact(key, "Okapi", "visits", f"Place {seq}", seq=seq))
    whole = await world.search.search(key, "okapi visits", limit=100)
    assert whole.next_cursor == ""
    seen, cursor = [], ""
    while True:
        page = await world.search.search(key, "okapi visits", limit=4, cursor=cursor)
        seen += [hit.id for hit in page.hits]
        assert page.as_of == whole.as_of
        world.clock.advance(timedelta(days=1))
        if not (cursor := page.next_cursor):
            break
    assert seen == [hit.id for hit in whole.hits]
    assert len(set(seen)) == len(seen) == 14


async def test_without_the_index_words_still_find_texts_and_the_facts_of_entities(world: World) -> None:
    key = fresh_key()
    row = fact(key, "Ada", "works_at", "Acme")
    text_id = await world.remember(key, 1, "Lunch with Ada.", row)
    nowhere = WeaviateIndex(Server("127.0.0.1", 9, 10), model_id="test/words", dimension=DIMENSION)
    page = await Search(world.graph.reader, nowhere, embed, clock=world.clock).search(key, "ada")
    await nowhere.close()
    assert page.degraded == ("weaviate",)
    assert {hit.id for hit in page.hits} == {row.id, text_id}


@pytest.mark.parametrize("embedder", [embedder_is_away, embedder_is_slow])
async def test_without_the_embedder_words_still_find(world: World, embedder: object) -> None:
    key = fresh_key()
    row = fact(key, "Ada", "works_at", "Acme")
    await world.remember(key, 1, "Lunch with Ada.", row)
    search = Search(
        world.graph.reader,
        world.index,
        embedder,  # type: ignore[arg-type]
        clock=world.clock,
        patience=timedelta(seconds=0.5),
    )
    page = await search.search(key, "ada")
    assert page.degraded == ("embedder",)
    assert row.id in {hit.id for hit in page.hits}
    assert all("vector" not in name for hit in page.hits for name in hit.found_by)


async def test_a_long_text_is_shown_around_what_was_asked(world: World) -> None:
    key = fresh_key()
    text = "rain and more rain " * 2000 + "then an okapi came " + "and rain again " * 2000
    artifact = text_of(key, "text 1", text)
    await world.graph.store.admit([admission(key, [artifact])])
    (hit,) = (await world.search.search(key, "okapi")).hits
    source = hit.sources[0]
    assert "okapi" in source.text
    assert text[source.start : source.start + len(source.text)] == source.text
    assert (source.length, len(source.text)) == (len(text), 4000)


async def test_a_page_is_plain_json(world: World) -> None:
    key = fresh_key()
    await world.remember(key, 1, "Ada works at Acme.", fact(key, "Ada", "works_at", "Acme"))
    page = await world.search.search(key, "ada")
    assert type(page).model_validate_json(page.model_dump_json()) == page


async def test_a_hub_brings_a_few_facts_not_all(world: World) -> None:
    key = fresh_key()
    rows = [fact(key, "Hub", "knows", f"Leaf {number}", seq=1, valid_at=day(-number)) for number in range(40)]
    await world.remember(key, 1, "A hub.", *rows)
    nowhere = WeaviateIndex(Server("127.0.0.1", 9, 10), model_id="test/words", dimension=DIMENSION)
    page = await Search(world.graph.reader, nowhere, embed, clock=world.clock).search(key, "hub", limit=100)
    await nowhere.close()
    facts = [hit.id for hit in page.hits if hit.kind == "fact"]
    assert facts == [row.id for row in rows[:10]]
    assert entity(key, "Hub").id == page.hits[0].facts[0].subject_id
