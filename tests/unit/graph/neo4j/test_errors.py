"""Neo4j's errors as ours."""

from __future__ import annotations

import asyncio
import socket
from datetime import timedelta

import pytest
from neo4j.exceptions import AuthError, Neo4jError, ServiceUnavailable, SessionExpired

from graph.neo4j.database import Database, connect
from graph.neo4j.errors import classified, translated
from graph.neo4j.store import Neo4jGraphStore
from topics.errors import Outage, Permanent, Retryable, StrandlineError


def of_server(code: str) -> Neo4jError:
    return Neo4jError._basic_hydrate(neo4j_code=code, message="the server's words")


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ServiceUnavailable("gone"), Outage),
        (SessionExpired("gone"), Outage),
        (AuthError("no"), Outage),
        (ConnectionResetError(), Outage),
        (of_server("Neo.TransientError.Transaction.DeadlockDetected"), Retryable),
        (of_server("Neo.TransientError.Transaction.LockAcquisitionTimeout"), Retryable),
        (of_server("Neo.TransientError.General.MemoryPoolOutOfMemoryError"), Retryable),
        (of_server("Neo.ClientError.Transaction.TransactionTimedOut"), Retryable),
        (of_server("Neo.ClientError.Cluster.NotALeader"), Retryable),
        (of_server("Neo.DatabaseError.Transaction.TransactionCommitFailed"), Retryable),
        (of_server("Neo.TransientError.General.DatabaseUnavailable"), Outage),
        (of_server("Neo.ClientError.Security.AuthenticationRateLimit"), Outage),
        (of_server("Neo.ClientError.Statement.SyntaxError"), Permanent),
        (of_server("Neo.ClientError.Schema.ConstraintValidationFailed"), Permanent),
        (of_server("Neo.DatabaseError.Statement.ExecutionFailed"), Permanent),
        (ValueError("what"), Permanent),
    ],
)
def test_the_kind_of_an_error_says_whether_a_repeat_can_help(error: Exception, kind: type[StrandlineError]) -> None:
    assert type(classified(error, "do it")) is kind


def test_the_drivers_error_is_kept_as_the_cause() -> None:
    cause = ServiceUnavailable("gone")
    with pytest.raises(Outage) as caught, translated("do it", timedelta(seconds=1)):
        raise cause
    assert caught.value.__cause__ is cause
    assert caught.value.service == "neo4j"


async def test_a_server_that_is_away_is_an_outage() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and nobody listens
        database = Database(connect(f"bolt://127.0.0.1:{taken.getsockname()[1]}"))
        with pytest.raises(Outage):
            await Neo4jGraphStore(database).raise_epochs(["p"])
        await database.close()


async def test_a_server_that_never_answers_is_an_outage_at_the_deadline() -> None:
    ended = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        await writer.wait_closed()
        ended.set()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    database = Database(connect(f"bolt://127.0.0.1:{port}"), deadline=timedelta(seconds=0.3))
    with pytest.raises(Outage, match=r"within 0\.3 s"):
        await Neo4jGraphStore(database).raise_epochs(["p"])
    await database.close()
    await ended.wait()
    server.close()
    await server.wait_closed()
