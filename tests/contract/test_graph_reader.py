"""GraphReader: what every implementation must do. What it reads is put there through the store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product

import pytest

from graph.model import Closure, FactRow, Neighbourhood, is_true
from tests.contract.backends import NEO4J, Graph, open_graph
from tests.contract.graph_rows import NOON, admission, admitted, day, entity, fact, fresh_key, text_of, write
from topics.keys import DatasetKey

TICK = timedelta(microseconds=1)


@pytest.fixture(params=[NEO4J])
async def graph(request: pytest.FixtureRequest) -> AsyncIterator[Graph]:
    async with open_graph(request.param, request) as graph:
        yield graph


async def remembered(graph: Graph, key: DatasetKey, *facts: FactRow) -> None:
    """One text that states all of them."""
    await admitted(graph.store, key, "text 1")
    await graph.store.apply([write(key, 1, facts=facts)])


async def texts(graph: Graph, key: DatasetKey, *told: str) -> list[str]:
    """Texts by these words, stored; their ids."""
    rows = [text_of(key, f"text {number}", text) for number, text in enumerate(told, start=1)]
    await graph.store.admit([admission(key, rows)])
    return [row.id for row in rows]


async def found(graph: Graph, key: DatasetKey, words: str, limit: int = 10) -> list[str]:
    return [id_ for id_, _ in await graph.reader.find_texts(key, words, limit)]


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_dataset_is_known_once_a_text_is_stored(graph: Graph) -> None:
    key = fresh_key()
    assert not await graph.reader.has_dataset(key)
    await admitted(graph.store, key, "a")
    assert await graph.reader.has_dataset(key)
    assert not await graph.reader.has_dataset(replace(key, dataset="other"))


async def test_a_text_is_found_by_its_words_as_soon_as_it_is_stored(graph: Graph) -> None:
    key = fresh_key()
    ids = await texts(graph, key, "The heron stood in the reeds.", "Nothing here.", "A heron, a heron, a HERON!")
    assert set(await found(graph, key, "heron")) == {ids[0], ids[2]}
    assert await found(graph, key, "reeds heron") == [ids[0], ids[2]]
    assert await found(graph, key, "unicorn") == []


async def test_a_text_is_found_by_its_title(graph: Graph) -> None:
    key = fresh_key()
    row = text_of(key, "a", "body", title="Quarterly zebra figures")
    await graph.store.admit([admission(key, [row])])
    assert await found(graph, key, "zebra") == [row.id]


async def test_the_best_come_first_and_no_more_than_asked(graph: Graph) -> None:
    key = fresh_key()
    await texts(graph, key, *(f"gnu number {number}" for number in range(7)))
    answer = await graph.reader.find_texts(key, "gnu", 3)
    scores = [score for _, score in answer]
    assert len(answer) == 3
    assert scores == sorted(scores, reverse=True)
    assert await found(graph, key, "gnu", 0) == []


async def test_words_reach_no_other_dataset(graph: Graph) -> None:
    mine = fresh_key()
    others = [fresh_key(), replace(mine, dataset="other")]
    (id_,) = await texts(graph, mine, "okapi")
    for other in others:
        await texts(graph, other, *["okapi okapi"] * 5)
    assert await found(graph, mine, "okapi", 3) == [id_]
    assert await found(graph, mine, others[0].dataset_id.replace("-", "")) == []


@pytest.mark.parametrize(
    "words",
    [
        "text:okapi",
        "okapi AND",
        "OR NOT",
        '"okapi',
        "okapi~2^3",
        "(okapi",
        "okapi\\",
        '+-&&||!(){}[]^"~*?:\\/',
        "*",
        "a*b?",
        "<>=",
    ],
)
async def test_signs_of_a_query_language_are_words_like_others(graph: Graph, words: str) -> None:
    key = fresh_key()
    (id_,) = await texts(graph, key, "An okapi.")
    assert await found(graph, key, words) in ([], [id_])


@pytest.mark.parametrize("words", ["", "  ", "?!…", "— –", "\x00", "\u200b"])
async def test_no_words_find_nothing(graph: Graph, words: str) -> None:
    key = fresh_key()
    await texts(graph, key, "An okapi.")
    assert await found(graph, key, words) == []


@pytest.mark.parametrize(
    "words", ["x" * 100_000, "word " * 20_000, " ".join(f"w{n}" for n in range(5000)), "日本" * 5000]
)
async def test_very_many_words_are_no_error(graph: Graph, words: str) -> None:
    key = fresh_key()
    await texts(graph, key, "An okapi.")
    assert await found(graph, key, words) == []
    assert len(await found(graph, key, "okapi " + words)) == 1


async def test_texts_of_other_scripts_are_found(graph: Graph) -> None:
    key = fresh_key()
    ids = await texts(graph, key, "Größe ändert sich", "東京で会議", "встреча в Москве", "Ünïcödé")
    for words, id_ in zip(("GRÖSSE größe", "東京", "Москве", "ünïcödé"), ids, strict=True):
        assert await found(graph, key, words) == [id_]


async def test_a_hyphenated_word_is_found_by_its_parts_and_whole(graph: Graph) -> None:
    key = fresh_key()
    (id_,) = await texts(graph, key, "The write-ahead log of ada@example.org")
    for words in ("write-ahead", "ahead", "ada@example.org"):
        assert await found(graph, key, words) == [id_]


async def test_entities_are_found_by_their_names(graph: Graph) -> None:
    key = fresh_key()
    await remembered(graph, key, fact(key, "Ada Lovelace", "works_at", "Analytical Engines"))
    ada, company = entity(key, "Ada Lovelace"), entity(key, "Analytical Engines", "company")
    assert [id_ for id_, _ in await graph.reader.find_entities(key, "lovelace", 5)] == [ada.id]
    assert [id_ for id_, _ in await graph.reader.find_entities(key, "engines?", 5)] == [company.id]
    assert await graph.reader.find_entities(replace(key, dataset="other"), "lovelace", 5) == []


# ── truth ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def asked(
    graph: Graph, key: DatasetKey, facts: Sequence[FactRow] = (), *, as_of: datetime = NOON, known_at: datetime = NOON
) -> Neighbourhood:
    return await graph.reader.neighbourhood(key, fact_ids=[one.id for one in facts], as_of=as_of, known_at=known_at)


async def test_a_fact_comes_with_its_times_and_its_texts(graph: Graph) -> None:
    key = fresh_key()
    row = fact(key, "Ada", "works_at", "Acme", stated_invalid_at=day(9), invalid_at=day(9), valid_at=day(-3) + TICK)
    await remembered(graph, key, row)
    seen = await asked(graph, key, [row])
    text = text_of(key, "text 1")
    assert seen.facts[row.id].fact == row
    assert seen.facts[row.id].source_ids == (text.id,)
    view = seen.texts[text.id]
    assert (view.text, view.seq, view.run_id, view.fact_ids) == (text.text, 1, text.run_id, (row.id,))
    assert (view.valid_at, view.created_at) == (NOON, NOON)


async def test_a_closed_fact_is_true_up_to_its_end_and_not_at_it(graph: Graph) -> None:
    key = fresh_key()
    old, new = fact(key, "Ada", "works_at", "Acme"), fact(key, "Ada", "works_at", "Hooli", seq=2, valid_at=day(2))
    new = replace(new, created_at=day(3))
    await remembered(graph, key, old)
    await graph.store.admit([admission(key, [text_of(key, "text 2")], at=day(3))])
    await graph.store.apply([write(key, 2, facts=[new], closures=[Closure(old.id, day(2), day(3))], at=day(3))])
    both = [old, new]
    truth = {
        (day(2) - TICK, day(3)): {old.id},
        (day(2), day(3)): {new.id},
        (day(2), day(3) - TICK): {old.id},
        (NOON - TICK, day(3)): set(),
        (NOON, NOON - TICK): set(),
    }
    for (as_of, known_at), ids in truth.items():
        assert set((await asked(graph, key, both, as_of=as_of, known_at=known_at)).facts) == ids


async def test_every_way_to_a_fact_obeys_the_rule_of_truth(graph: Graph) -> None:
    key = fresh_key()
    options = (None, day(1), day(2))
    rows = [
        replace(
            fact(key, "Ada", f"relation-{number}", "Acme", valid_at=day(number % 2)),
            created_at=day(number % 3),
            invalid_at=invalid,
            stated_invalid_at=stated,
            expired_at=expired,
            retracted_at=retracted,
        )
        for number, (invalid, stated, expired, retracted) in enumerate(
            product(options, options, options, (None, day(2)))
        )
    ]
    await remembered(graph, key, *rows)
    text, ada, acme = text_of(key, "text 1"), entity(key, "Ada"), entity(key, "Acme", "company")
    for as_of, known_at in product((day(0), day(1) - TICK, day(1), day(2), day(3)), repeat=2):
        wanted = {row.id for row in rows if is_true(row, as_of, known_at)}
        ways = [
            {"fact_ids": [row.id for row in rows]},
            {"artifact_ids": [text.id]},
            {"entity_ids": [ada.id]},
            {"entity_ids": [acme.id]},
        ]
        for way in ways:
            seen = await graph.reader.neighbourhood(key, **way, as_of=as_of, known_at=known_at, facts_per_entity=100)  # type: ignore[arg-type]
            assert set(seen.facts) == wanted, (as_of, known_at, way.keys())


# ── neighbourhood ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_entity_brings_its_newest_true_facts_from_both_sides(graph: Graph) -> None:
    key = fresh_key()
    rows = [fact(key, "Ada", "visits", f"Place {number}", valid_at=day(-number)) for number in range(5)]
    later = fact(key, "Ada", "visits", "Tomorrow", valid_at=day(1))
    await remembered(graph, key, *rows, later)
    ada, place = entity(key, "Ada"), entity(key, "Place 3", "company")
    seen = await graph.reader.neighbourhood(
        key, entity_ids=[ada.id, place.id, "unknown"], as_of=NOON, known_at=NOON, facts_per_entity=2
    )
    assert dict(seen.facts_of_entity) == {ada.id: (rows[0].id, rows[1].id), place.id: (rows[3].id,)}
    assert set(seen.facts) == {rows[0].id, rows[1].id, rows[3].id}


async def test_a_fact_about_itself_comes_once(graph: Graph) -> None:
    key = fresh_key()
    ada = entity(key, "Ada")
    row = replace(fact(key, "Ada", "knows", "Ada"), object_id=ada.id)
    await admitted(graph.store, key, "text 1")
    await graph.store.apply([write(key, 1, facts=[row], entities=[ada])])
    seen = await graph.reader.neighbourhood(key, entity_ids=[ada.id], as_of=NOON, known_at=NOON)
    assert dict(seen.facts_of_entity) == {ada.id: (row.id,)}


async def test_the_oldest_sources_come_and_no_more_than_asked(graph: Graph) -> None:
    key = fresh_key()
    row = fact(key, "Ada", "works_at", "Acme")
    names = [f"text {number}" for number in range(1, 6)]
    told = [text_of(key, name, valid_at=day(-number)) for number, name in enumerate(names)]
    await graph.store.admit([admission(key, told)])
    await graph.store.apply([write(key, 1, facts=[row])])
    for number in range(2, 6):
        await graph.store.apply([write(key, number, restated=[row])])
    seen = await graph.reader.neighbourhood(key, fact_ids=[row.id], as_of=NOON, known_at=NOON, sources_per_fact=2)
    assert seen.facts[row.id].source_ids == (told[4].id, told[3].id)
    assert set(seen.texts) == {told[4].id, told[3].id}


async def test_a_text_brings_its_true_facts_and_names_all(graph: Graph) -> None:
    key = fresh_key()
    now, later = fact(key, "Ada", "works_at", "Acme"), fact(key, "Ada", "works_at", "Hooli", valid_at=day(5))
    await remembered(graph, key, now, later)
    text = text_of(key, "text 1")
    seen = await graph.reader.neighbourhood(key, artifact_ids=[text.id], as_of=NOON, known_at=NOON)
    assert set(seen.facts) == {now.id}
    assert set(seen.texts[text.id].fact_ids) == {now.id, later.id}


async def test_a_text_is_unknown_before_it_came(graph: Graph) -> None:
    key = fresh_key()
    await admitted(graph.store, key, "a")
    id_ = text_of(key, "a").id
    before = await graph.reader.neighbourhood(key, artifact_ids=[id_], as_of=NOON, known_at=NOON - TICK)
    after = await graph.reader.neighbourhood(key, artifact_ids=[id_], as_of=NOON, known_at=NOON)
    assert (set(before.texts), set(after.texts)) == (set(), {id_})


async def test_ids_of_another_dataset_are_unknown(graph: Graph) -> None:
    mine, theirs = fresh_key(), fresh_key()
    row = fact(theirs, "Ada", "works_at", "Acme")
    await remembered(graph, theirs, row)
    await admitted(graph.store, mine, "a")
    seen = await graph.reader.neighbourhood(
        mine,
        fact_ids=[row.id],
        entity_ids=[entity(theirs, "Ada").id],
        artifact_ids=[text_of(theirs, "text 1").id],
        as_of=NOON,
        known_at=NOON,
    )
    assert (dict(seen.facts), dict(seen.facts_of_entity), dict(seen.texts)) == ({}, {}, {})


async def test_nothing_asked_is_nothing_found(graph: Graph) -> None:
    assert await graph.reader.neighbourhood(fresh_key(), as_of=NOON, known_at=NOON) == Neighbourhood()
