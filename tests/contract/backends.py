"""Opens each implementation of the graph's seams. Tests isolate themselves by datasets of their own, never by wiping."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from graph.neo4j.database import Database, connect
from graph.neo4j.reader import Neo4jGraphReader
from graph.neo4j.runs import Neo4jRunStore
from graph.neo4j.schema import migrate
from graph.neo4j.store import Neo4jGraphStore
from graph.protocols import GraphReader, GraphStore, RunStore, VectorIndex
from graph.weaviate.connection import Server
from graph.weaviate.index import WeaviateIndex
from strandline.stack import Addresses
from tests.doubles.graph_store import MemoryGraphStore
from tests.doubles.run_store import MemoryRunStore

NEO4J = pytest.param("neo4j", marks=pytest.mark.connected)
WEAVIATE = pytest.param("weaviate", marks=pytest.mark.connected)


@dataclass(frozen=True)
class Graph:
    """The three views of one graph."""

    store: GraphStore
    runs: RunStore
    reader: GraphReader


def neo4j_database(services: Addresses) -> Database:
    """Close it."""
    return Database(connect(services.neo4j_uri, user=services.neo4j_user, password=services.neo4j_password or None))


@asynccontextmanager
async def open_graph(kind: str, request: pytest.FixtureRequest) -> AsyncIterator[Graph]:
    """A graph with the current schema."""
    assert kind == "neo4j"
    database = neo4j_database(request.getfixturevalue("services"))
    try:
        await migrate(database)
        yield Graph(Neo4jGraphStore(database), Neo4jRunStore(database), Neo4jGraphReader(database))
    finally:
        await database.close()


@asynccontextmanager
async def open_store(kind: str, request: pytest.FixtureRequest) -> AsyncIterator[GraphStore]:
    """Only the store: the double that ships has no other view."""
    if kind == "memory":
        yield MemoryGraphStore()
        return
    async with open_graph(kind, request) as graph:
        yield graph.store


@asynccontextmanager
async def open_runs(kind: str, request: pytest.FixtureRequest) -> AsyncIterator[RunStore]:
    """Only the run store."""
    if kind == "memory":
        yield MemoryRunStore()
        return
    async with open_graph(kind, request) as graph:
        yield graph.runs


DIMENSION = 8
"""Of the vectors of these tests."""


@asynccontextmanager
async def open_index(kind: str, request: pytest.FixtureRequest) -> AsyncIterator[VectorIndex]:
    """An index whose collections are there."""
    assert kind == "weaviate"
    index = weaviate_index(request.getfixturevalue("services"))
    try:
        await index.ensure()
        yield index
    finally:
        await index.close()


def weaviate_index(
    services: Addresses, *, prefix: str = "Contract", model_id: str = "test/eight", dimension: int = DIMENSION
) -> WeaviateIndex:
    """Close it. All tests of a server share the collections of a prefix; a dataset of one's own is enough."""
    server = Server.at(services.weaviate_http_url, services.weaviate_grpc_port, services.weaviate_api_key)
    return WeaviateIndex(server, model_id=model_id, dimension=dimension, prefix=prefix)
