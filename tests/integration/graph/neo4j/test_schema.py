"""Migrations on a database of their own: Neo4j Community has only one a server, so these tests take a stack that nobody shares."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator

import pytest

from graph.neo4j.cypher import Statement
from graph.neo4j.database import Database
from graph.neo4j.schema import SchemaTooNew, migrate, migrations
from strandline.stack import Addresses
from tests.contract.backends import neo4j_database
from tests.services import native_stack

pytestmark = pytest.mark.connected

_MIGRATE = """
import asyncio, sys
from graph.neo4j.database import Database, connect
from graph.neo4j.schema import migrate

async def main():
    database = Database(connect(sys.argv[1], user=sys.argv[2], password=sys.stdin.read()))
    print(await migrate(database))
    await database.close()

asyncio.run(main())
"""


def ask(text: str) -> Statement:
    return Statement("test", "a question of the test", "", "", text)


@pytest.fixture(scope="module")
def server() -> Iterator[Addresses]:
    """A Neo4j that these tests alone use."""
    with native_stack(lambda line: None) as stack:
        yield stack.up(["neo4j"])


@pytest.fixture
async def empty(server: Addresses) -> AsyncIterator[Database]:
    """Its database without any node, constraint or index."""
    database = neo4j_database(server)
    await database.write("empty", ask("MATCH (n) DETACH DELETE n"))
    for kind, show in (
        ("CONSTRAINT", "SHOW CONSTRAINTS YIELD name"),
        ("INDEX", "SHOW INDEXES YIELD name, type WHERE type <> 'LOOKUP'"),
    ):
        for row in await database.read("list", ask(show)):
            await database.write("drop", ask(f"DROP {kind} `{row['name']}`"))
    yield database
    await database.close()


async def test_processes_that_start_at_once_migrate_once(empty: Database, server: Addresses) -> None:
    processes = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _MIGRATE,
            server.neo4j_uri,
            server.neo4j_user,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        for _ in range(3)
    ]
    answers = await asyncio.gather(*(one.communicate(server.neo4j_password.encode()) for one in processes))
    latest = migrations()[-1].version
    for process, (out, error) in zip(processes, answers, strict=True):
        assert process.returncode == 0, error.decode()
        assert out.decode().split()[-1] == str(latest)
    (schema,) = await empty.read("look", ask("MATCH (s:Schema) RETURN s.version AS version, s.applied AS applied"))
    assert schema["version"] == latest
    assert schema["applied"] == [f"{one.version:04}_{one.name}" for one in migrations()]


async def test_a_newer_schema_is_refused(empty: Database) -> None:
    latest = await migrate(empty)
    await empty.write("age", ask("MATCH (s:Schema) SET s.version = s.version + 1"))
    with pytest.raises(SchemaTooNew, match=f"schema {latest + 1}.*knows {latest}"):
        await migrate(empty)


async def test_a_process_that_died_in_a_migration_leaves_it_to_the_next(empty: Database) -> None:
    first = migrations()[0].statements
    for text in first[: len(first) // 2]:
        await empty.write("begin", ask(text))
    assert await migrate(empty) == migrations()[-1].version
    assert await migrate(empty) == migrations()[-1].version
