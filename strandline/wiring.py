"""Builds all clients but the log's (log_wiring.py). Each function opens what a process needs by the settings and closes it with the block."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from agents.breaker import Breakers
from agents.committers import Stores, committing
from agents.deps import Deps
from agents.metrics import Metrics
from agents.models.base import Embedder, LanguageModel
from agents.models.registry import ModelSettings, choose, open_models
from graph.neo4j.database import Database, connect
from graph.neo4j.reader import Neo4jGraphReader
from graph.neo4j.runs import Neo4jRunStore
from graph.neo4j.schema import migrate
from graph.neo4j.store import Neo4jGraphStore
from graph.read.search import Search, Vector
from graph.weaviate.canary import KeywordSearchBroken
from graph.weaviate.connection import Server
from graph.weaviate.index import WeaviateIndex
from strandline.health import HealthCheck
from strandline.log_wiring import open_log
from strandline.memory import Edge, Memory, searching_in
from strandline.run_feed import RunFeed
from strandline.settings import Settings
from topics.clock import SystemClock
from topics.kafka.log import KafkaLog

logger = structlog.get_logger(__name__)

Language = tuple[LanguageModel, Embedder]
"""What reads texts, and what makes their vectors."""


@asynccontextmanager
async def open_database(settings: Settings) -> AsyncIterator[Database]:
    """Connects at its first use; the schema is brought up to date by whoever writes, not here."""
    neo4j = settings.neo4j
    password = neo4j.password.get_secret_value() if neo4j.password else None
    database = Database(connect(neo4j.uri, user=neo4j.user, password=password), name=neo4j.database)
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def open_language(settings: Settings) -> AsyncIterator[Language]:
    """The model and the embedder that the settings mean; what the user must hear about them is logged."""
    chosen = model_settings(settings)
    if notice := choose(chosen).notice:
        logger.warning("models.notice", notice=notice)
    model, embedder = open_models(chosen)
    try:
        yield model, embedder
    finally:
        await model.close()
        await embedder.close()


@asynccontextmanager
async def open_index(settings: Settings, embedder: Embedder) -> AsyncIterator[WeaviateIndex]:
    """Connects at its first use; collections are made by `ensure`."""
    weaviate = settings.weaviate
    key = weaviate.api_key.get_secret_value() if weaviate.api_key else ""
    index = WeaviateIndex(
        Server.at(weaviate.http_url, weaviate.grpc_port, key),
        model_id=embedder.model_id,
        dimension=embedder.dimension,
        prefix=weaviate.prefix,
    )
    try:
        yield index
    finally:
        await index.close()


@asynccontextmanager
async def open_deps(
    settings: Settings, log: KafkaLog, language: Language, metrics: Metrics, breakers: Breakers
) -> AsyncIterator[Deps]:
    """What a worker's stages need. Makes schema and collections if they are not there; raises Outage while a service is away."""
    model, embedder = language
    async with AsyncExitStack() as opened:
        database = await opened.enter_async_context(open_database(settings))
        index = await opened.enter_async_context(open_index(settings, embedder))
        await log.start()
        await migrate(database)
        await index.ensure()
        try:
            await index.check_words()
        except KeywordSearchBroken as error:
            # What is remembered is safe, only found worse: a reason to say so, none to stop.
            logger.error("index.words_missed", error_code=error.code, error=str(error))
        stores = Stores(Neo4jGraphStore(database), Neo4jRunStore(database), index)
        yield await opened.enter_async_context(
            committing(
                stores, model, embedder, clock=SystemClock(), log_id=log.log_id, metrics=metrics, breakers=breakers
            )
        )


@asynccontextmanager
async def open_memory(settings: Settings, *, edge: Edge = "api") -> AsyncIterator[Memory]:
    """What an edge speaks to. Waits for nothing: whatever is away says so when it is asked."""
    async with AsyncExitStack() as opened:
        log = await opened.enter_async_context(open_log(settings))
        database = await opened.enter_async_context(open_database(settings))
        _, embedder = await opened.enter_async_context(open_language(settings))
        index = await opened.enter_async_context(open_index(settings, embedder))

        async def embed(question: str) -> Vector:
            vector: Vector = (await embedder.embed([question]))[0]
            return vector

        yield Memory(
            log=log,
            feed=await opened.enter_async_context(RunFeed(log)),
            run_store=Neo4jRunStore(database),
            searching=searching_in(Search(Neo4jGraphReader(database), index, embed)),
            health=HealthCheck(
                {
                    "kafka": lambda: log.ends("remember.requests"),
                    "neo4j": database.driver.verify_connectivity,
                    "weaviate": index.ready,
                }
            ),
            wait_limit=settings.api.wait_limit,
            edge=edge,
        )


def model_settings(settings: Settings) -> ModelSettings:
    """The models' own form of the settings."""
    return ModelSettings(
        provider=settings.model.provider,
        model=settings.model.model,
        base_url=settings.model.base_url,
        anthropic_api_key=settings.anthropic_api_key,
        openai_api_key=settings.openai_api_key,
        timeout=settings.model.timeout,
        concurrency=settings.model.concurrency,
        embedder=settings.embedder.provider,
        embedder_model=settings.embedder.model,
        embedder_base_url=settings.embedder.base_url,
        latency=settings.model.latency,
    )
