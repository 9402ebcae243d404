"""Search: words and vectors find, rank fuses, the graph decides what is true at the asked time.

Eight lists are asked for at once: facts, entities and texts, each by words and by vector in the index; texts and entity names by words in the
graph too, where they are from the moment they are stored. Entities are fused first and stand, as one list, for their newest true facts: by
three lists of their own they would outvote the fact that was meant. The lists are fused by rank alone.
Then the fused items are made whole in their order, a few at a time, until the page is full: what is not true at `as_of`, as believed at
`known_at`, falls out here. The lists are equally long whatever page is asked for, so pages neither repeat nor skip.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from graph.model import FactView, Id, Neighbourhood, TextView
from graph.protocols import GraphReader, VectorIndex
from graph.read.answers import FoundFact, Hit, SearchPage, SourceText
from graph.read.cursors import Cursor
from graph.read.excerpts import excerpt
from graph.read.fusion import Fused, fuse
from graph.relations import relation_of
from topics.clock import Clock, SystemClock
from topics.errors import NotFound, Outage, Refused, Retryable
from topics.keys import DatasetKey

MAX_LIMIT = 100
"""Hits of a page (features.md 543)."""

DEPTH = 100
"""Of each list of facts or texts."""

ENTITIES = 10
"""Entities of a list that stand for their facts."""

PART = 40
"""Fused items that are judged, and put in their final order, together; the same for every page, or pages would overlap."""

FACTS_PER_ENTITY = 10
FACTS_PER_TEXT = 50
SOURCES_PER_FACT = 3

PATIENCE = timedelta(seconds=3)
"""For the index and the embedder: after it the words of the graph answer alone (features.md 573)."""

Vector = NDArray[np.float32]
Embed = Callable[[str], Awaitable[Vector]]
"""A question as a unit vector. Raises Outage or Retryable when the model is away."""

Item = tuple[Literal["fact", "text"], Id]
T = TypeVar("T")


@dataclass(slots=True)
class _Found:
    """What the lists gave, and who was away."""

    lists: dict[str, Sequence[Item]] = field(default_factory=dict)
    entities: dict[str, Sequence[Id]] = field(default_factory=dict)
    away: set[str] = field(default_factory=set)


class Search:
    """Answers questions to one dataset at a time. Safe for many calls at once."""

    def __init__(
        self,
        reader: GraphReader,
        index: VectorIndex,
        embed: Embed,
        *,
        clock: Clock | None = None,
        patience: timedelta = PATIENCE,
    ) -> None:
        self._reader = reader
        self._index = index
        self._embed = embed
        self._clock = clock or SystemClock()
        self._patience = patience

    async def search(
        self,
        key: DatasetKey,
        query: str,
        *,
        limit: int = 10,
        as_of: datetime | None = None,
        known_at: datetime | None = None,
        cursor: str = "",
    ) -> SearchPage:
        """The best `limit` (1..100) hits for the words or question, and a cursor to the next.

        `as_of`: true then; `known_at`: as believed then; aware, absent = now. With a cursor the times are those of the first page.
        A text whose facts are all untrue at that time is left out, as is one written after `as_of` or stored after `known_at`.

        Raises NotFound for a dataset without any text, Refused for a bad argument, Outage("neo4j") when the graph is away. The index or the
        embedder being away or slow is no error: the page says `degraded`.
        """
        place = self._place(key, query, limit, as_of, known_at, cursor)
        if not await self._reader.has_dataset(key):
            raise NotFound(
                f"there is no dataset {key.dataset!r} of this user: nothing has been remembered in it", field="dataset"
            )
        found = await self._find(key, query)
        await self._add_facts_of_entities(key, found, place)
        # Which list came first is chance; equal scores must not hang on it, or pages would repeat.
        fused = fuse({name: found.lists[name] for name in sorted(found.lists)})
        hits = await self._true_hits(key, query, fused, place, place.offset + limit + 1)
        page = hits[place.offset : place.offset + limit]
        more = len(hits) > place.offset + limit
        following = Cursor(place.offset + limit, place.as_of, place.known_at)
        return SearchPage(
            hits=tuple(page),
            as_of=place.as_of,
            known_at=place.known_at,
            next_cursor=following.encode(key, query) if more else "",
            degraded=tuple(sorted(found.away)),
        )

    def _place(
        self, key: DatasetKey, query: str, limit: int, as_of: datetime | None, known_at: datetime | None, cursor: str
    ) -> Cursor:
        if not 1 <= limit <= MAX_LIMIT:
            raise Refused(f"limit must be from 1 to {MAX_LIMIT}", field="limit")
        if not query.strip():
            raise Refused("query is empty: ask by words or a question", field="query")
        if cursor:
            return Cursor.decode(cursor, key, query)
        now = self._clock.now()
        return Cursor(0, _aware(as_of or now, "as_of"), _aware(known_at or now, "known_at"))

    # ── finding ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _find(self, key: DatasetKey, query: str) -> _Found:
        """All lists at once. The graph's are awaited whatever they take, its errors are the caller's; the others may be away."""
        found = _Found()
        await asyncio.gather(
            self._find_in_graph(key, query, found),
            self._if_there("weaviate", self._find_by_words(key, query, found), found),
            self._find_by_vector(key, query, found),
        )
        return found

    async def _find_in_graph(self, key: DatasetKey, query: str, found: _Found) -> None:
        texts, entities = await asyncio.gather(
            self._reader.find_texts(key, query, DEPTH), self._reader.find_entities(key, query, ENTITIES)
        )
        found.lists["text.stored"] = [("text", id_) for id_, _ in texts]
        found.entities["stored"] = [id_ for id_, _ in entities]

    async def _find_by_words(self, key: DatasetKey, query: str, found: _Found) -> None:
        facts, entities, texts = await asyncio.gather(
            self._index.by_words(key, "Fact", query, DEPTH),
            self._index.by_words(key, "Entity", query, ENTITIES),
            self._index.by_words(key, "Chunk", query, DEPTH),
        )
        found.lists["fact.words"] = [("fact", id_) for id_ in facts]
        found.lists["text.words"] = [("text", id_) for id_ in texts]
        found.entities["words"] = entities

    async def _find_by_vector(self, key: DatasetKey, query: str, found: _Found) -> None:
        vector = await self._if_there("embedder", self._embed(query), found)
        if vector is not None:
            await self._if_there("weaviate", self._find_near(key, vector, found), found)

    async def _find_near(self, key: DatasetKey, vector: Vector, found: _Found) -> None:
        facts, entities, texts = await asyncio.gather(
            self._index.by_vector(key, "Fact", vector, DEPTH),
            self._index.by_vector(key, "Entity", vector, ENTITIES),
            self._index.by_vector(key, "Chunk", vector, DEPTH),
        )
        found.lists["fact.vector"] = [("fact", id_) for id_, _ in facts]
        found.lists["text.vector"] = [("text", id_) for id_, _ in texts]
        found.entities["vector"] = [id_ for id_, _ in entities]

    async def _if_there(self, service: str, asked: Awaitable[T], found: _Found) -> T | None:
        """The answer, or None and a note of who is away."""
        try:
            async with asyncio.timeout(self._patience.total_seconds()):
                return await asked
        except Outage as error:
            found.away.add(error.service)
        except (Retryable, TimeoutError):
            found.away.add(service)
        return None

    async def _add_facts_of_entities(self, key: DatasetKey, found: _Found, place: Cursor) -> None:
        """The entities become one list of their newest true facts, the best entity's first."""
        fused = fuse({name: found.entities[name] for name in sorted(found.entities)})
        wanted = [one.item for one in fused[:ENTITIES]]
        if not wanted:
            return
        newest = await self._reader.newest_facts(
            key, wanted, as_of=place.as_of, known_at=place.known_at, limit=FACTS_PER_ENTITY
        )
        found.lists["entity"] = [("fact", fact_id) for id_ in wanted for fact_id in newest.get(id_, ())]

    # ── judging ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _true_hits(
        self, key: DatasetKey, query: str, fused: Sequence[Fused[Item]], place: Cursor, enough: int
    ) -> list[Hit]:
        """The first `enough` of the fused items that hold at the asked times. An item's fate hangs on itself alone."""
        hits: list[Hit] = []
        for part in _parts(fused, PART):
            if len(hits) >= enough:
                break
            around = await self._reader.neighbourhood(
                key,
                fact_ids=[one.item[1] for one in part if one.item[0] == "fact"],
                artifact_ids=[one.item[1] for one in part if one.item[0] == "text"],
                as_of=place.as_of,
                known_at=place.known_at,
                sources_per_fact=SOURCES_PER_FACT,
            )
            there = [hit for one in part if (hit := _hit(one, around, place, query)) is not None]
            # Who has which address and who wrote to whom is in every mail: true, found by every name, and seldom the answer.
            hits.extend(sorted(there, key=_is_bookkeeping))
        return hits[:enough]


def _aware(at: datetime, name: str) -> datetime:
    if at.tzinfo is None:
        raise Refused(f"{name} has no time zone: guessing one would move the answer", field=name)
    return at.astimezone(UTC)


def _parts(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _hit(one: Fused[Item], around: Neighbourhood, place: Cursor, query: str) -> Hit | None:
    kind, id_ = one.item
    if kind == "fact":
        view = around.facts.get(id_)
        if view is None:
            return None
        sources = [around.texts[source] for source in view.source_ids if source in around.texts]
        facts: Sequence[FactView] = [view]
    else:
        text = around.texts.get(id_)
        if text is None or text.valid_at > place.as_of:
            return None
        facts = _true_facts(text, around.facts)
        if text.fact_ids and not facts:
            return None
        sources = [text]
    return Hit(
        kind=kind,
        id=id_,
        score=round(one.score, 6),
        found_by=one.lists,
        facts=tuple(FoundFact.of(view.fact, view.source_ids) for view in facts),
        sources=tuple(_source(text, query) for text in sources),
    )


def _is_bookkeeping(hit: Hit) -> bool:
    return hit.kind == "fact" and all(relation_of(fact.relation).bookkeeping for fact in hit.facts)


def _true_facts(text: TextView, facts: Mapping[Id, FactView]) -> list[FactView]:
    """The newest first."""
    there = [facts[id_] for id_ in text.fact_ids if id_ in facts]
    there.sort(key=lambda view: (view.fact.valid_at, view.fact.id), reverse=True)
    return there[:FACTS_PER_TEXT]


def _source(text: TextView, query: str) -> SourceText:
    start, part = excerpt(text.text, query)
    return SourceText(
        artifact_id=text.artifact_id,
        run_id=text.run_id,
        seq=text.seq,
        text=part,
        start=start,
        length=len(text.text),
        title=text.title,
        author=text.author,
        source_type=text.source_type,
        url=text.url,
        valid_at=text.valid_at,
        created_at=text.created_at,
    )
