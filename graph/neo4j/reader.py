"""GraphReader on Neo4j. Each question is a few statements without a transaction around them: what is read is judged by its own times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from graph.model import FactRow, FactView, Id, Neighbourhood, TextView, is_true
from graph.neo4j.cypher import Statement, statement
from graph.neo4j.database import Database, Row
from graph.neo4j.lucene import word_query
from graph.neo4j.rows import fact_row, instant, written
from topics.keys import DatasetKey

_HAS_DATASET = statement("reading", "has_dataset")
_FIND_TEXTS = statement("reading", "find_texts")
_FIND_ENTITIES = statement("reading", "find_entities")
_FACTS = statement("reading", "facts")
_NEWEST_FACTS = statement("reading", "newest_facts")
_SOURCES = statement("reading", "sources")
_TEXTS = statement("reading", "texts")


class Neo4jGraphReader:
    """GraphReader. The schema must be up to date (graph/neo4j/schema.py)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def has_dataset(self, key: DatasetKey) -> bool:
        return bool(await self._database.read("look up a dataset", _HAS_DATASET, dataset_id=key.dataset_id))

    async def find_texts(self, key: DatasetKey, words: str, limit: int) -> Sequence[tuple[Id, float]]:
        return await self._find(_FIND_TEXTS, key, words, limit)

    async def find_entities(self, key: DatasetKey, words: str, limit: int) -> Sequence[tuple[Id, float]]:
        return await self._find(_FIND_ENTITIES, key, words, limit)

    async def newest_facts(
        self, key: DatasetKey, entity_ids: Sequence[Id], *, as_of: datetime, known_at: datetime, limit: int = 10
    ) -> Mapping[Id, tuple[Id, ...]]:
        if not entity_ids or limit < 1:
            return {}
        rows = await self._database.read(
            "read facts of entities",
            _NEWEST_FACTS,
            dataset_id=key.dataset_id,
            entity_ids=list(dict.fromkeys(entity_ids)),
            as_of=written(as_of),
            known_at=written(known_at),
            limit=limit,
        )
        return {row["entity_id"]: tuple(row["fact_ids"]) for row in rows}

    async def neighbourhood(
        self,
        key: DatasetKey,
        *,
        fact_ids: Sequence[Id] = (),
        entity_ids: Sequence[Id] = (),
        artifact_ids: Sequence[Id] = (),
        as_of: datetime,
        known_at: datetime,
        facts_per_entity: int = 10,
        sources_per_fact: int = 5,
    ) -> Neighbourhood:
        of_entity = await self.newest_facts(key, entity_ids, as_of=as_of, known_at=known_at, limit=facts_per_entity)
        wanted = dict.fromkeys([*fact_ids, *(id_ for ids in of_entity.values() for id_ in ids)])
        found = await self._facts(key, list(wanted), artifact_ids)
        facts = {one.id: one for one in found if is_true(one, as_of, known_at)}
        sources = await self._sources(list(facts), known_at, sources_per_fact)
        texts = await self._texts(key, {*artifact_ids, *(id_ for ids in sources.values() for id_ in ids)}, known_at)
        return Neighbourhood(
            facts={id_: FactView(one, tuple(sources.get(id_, ()))) for id_, one in facts.items()},
            facts_of_entity=of_entity,
            texts=texts,
        )

    async def _find(self, asked: Statement, key: DatasetKey, words: str, limit: int) -> Sequence[tuple[Id, float]]:
        query = word_query(key, words)
        if query is None or limit < 1:
            return []
        rows = await self._database.read("search by words", asked, words=query, dataset_id=key.dataset_id, limit=limit)
        return [(row["id"], row["score"]) for row in rows]

    async def _facts(self, key: DatasetKey, fact_ids: Sequence[Id], artifact_ids: Sequence[Id]) -> list[FactRow]:
        if not fact_ids and not artifact_ids:
            return []
        rows = await self._database.read(
            "read facts",
            _FACTS,
            dataset_id=key.dataset_id,
            fact_ids=list(fact_ids),
            artifact_ids=list(artifact_ids),
        )
        return [fact_row(row) for row in rows]

    async def _sources(self, fact_ids: Sequence[Id], known_at: datetime, limit: int) -> Mapping[Id, list[Id]]:
        if not fact_ids or limit < 1:
            return {}
        rows = await self._database.read(
            "read sources", _SOURCES, fact_ids=list(fact_ids), known_at=written(known_at), limit=limit
        )
        return {row["fact_id"]: row["source_ids"] for row in rows}

    async def _texts(self, key: DatasetKey, artifact_ids: set[Id], known_at: datetime) -> Mapping[Id, TextView]:
        if not artifact_ids:
            return {}
        rows = await self._database.read(
            "read texts",
            _TEXTS,
            dataset_id=key.dataset_id,
            artifact_ids=sorted(artifact_ids),
            known_at=written(known_at),
        )
        return {row["text"]["id"]: _text_view(row) for row in rows}


def _text_view(row: Row) -> TextView:
    text = row["text"]
    return TextView(
        artifact_id=text["id"],
        run_id=text["run_id"],
        seq=text["seq"],
        text=text["text"],
        title=text["title"],
        author=text["author"],
        source_type=text["connector"] or text["source_type"],
        url=text["url"],
        valid_at=instant(text["valid_at"]),
        created_at=instant(text["created_at"]),
        fact_ids=tuple(sorted(row["fact_ids"])),
    )
