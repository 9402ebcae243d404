"""The one way to Neo4j: short transactions with a deadline on both sides, and errors of our own tree."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import neo4j
from neo4j import AsyncDriver, AsyncGraphDatabase, AsyncResult, AsyncTransaction, NotificationMinimumSeverity, Query

from graph.neo4j.cypher import Statement
from graph.neo4j.errors import translated

Row = dict[str, Any]

TRANSACTION_TIMEOUT = timedelta(seconds=10)
"""The server ends a transaction after it, so that a lost client's locks do not last."""

DEADLINE = timedelta(seconds=12)
"""The client gives up after it: a frozen server sends no error. A little more than the server's, whose answer says more."""


def connect(uri: str, *, user: str = "neo4j", password: str | None = None) -> AsyncDriver:
    """A driver with the options all parts rely on. It opens no connection yet; close it with `await driver.close()`."""
    return AsyncGraphDatabase.driver(
        uri,
        auth=(user, password) if password is not None else None,
        # Each query that names a property nobody has written yet would add a line to the log.
        notifications_min_severity=NotificationMinimumSeverity.OFF,
        connection_timeout=5.0,
        connection_acquisition_timeout=8.0,
        liveness_check_timeout=30.0,
        max_connection_pool_size=32,
        keep_alive=True,
        user_agent="strandline",
    )


class Transaction:
    """Runs named statements in one transaction."""

    def __init__(self, tx: AsyncTransaction) -> None:
        self._tx = tx

    async def rows(self, statement: Statement, **arguments: Any) -> list[Row]:
        """All rows of the answer, as dictionaries."""
        return await _rows(await self._tx.run(statement.text, arguments))

    async def one(self, statement: Statement, **arguments: Any) -> Row:
        """The only row."""
        rows = await self.rows(statement, **arguments)
        if len(rows) != 1:
            raise ValueError(f"{statement.name} gave {len(rows)} rows instead of one")
        return rows[0]


class Database:
    """One database of a server. Safe for many callers in one event loop."""

    def __init__(
        self,
        driver: AsyncDriver,
        *,
        name: str = "neo4j",
        timeout: timedelta = TRANSACTION_TIMEOUT,
        deadline: timedelta = DEADLINE,
    ) -> None:
        self.driver = driver
        self.name = name
        self._timeout = timeout
        self._deadline = deadline

    @asynccontextmanager
    async def transaction(self, what: str) -> AsyncIterator[Transaction]:
        """One explicit write transaction, committed at the end of the block; anything raised in it leaves nothing behind.

        `what` ends the sentence "neo4j could not …". Raises Outage, Retryable or Permanent; never repeats by itself.
        """
        with translated(what, self._deadline):
            async with (
                asyncio.timeout(self._deadline.total_seconds()),
                self.driver.session(database=self.name, fetch_size=-1) as session,
                await session.begin_transaction(timeout=self._timeout.total_seconds()) as tx,
            ):
                yield Transaction(tx)
                await tx.commit()

    async def read(self, what: str, statement: Statement, **arguments: Any) -> list[Row]:
        """One statement that changes nothing, in a transaction of its own. Errors as `transaction`."""
        return (await self._run(what, neo4j.READ_ACCESS, statement.text, arguments))[0]

    async def write(self, what: str, statement: Statement, **arguments: Any) -> list[Row]:
        """One statement in a transaction of its own: one journey instead of three. Errors as `transaction`."""
        return (await self._run(what, neo4j.WRITE_ACCESS, statement.text, arguments))[0]

    async def explain(self, statement: Statement, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The server's plan of a statement, which is not run: for tests and `doctor`."""
        query = "EXPLAIN " + statement.text
        plan = (await self._run(f"explain {statement.name}", neo4j.READ_ACCESS, query, arguments))[1].plan
        return plan or {}

    async def close(self) -> None:
        """Closes the driver."""
        await self.driver.close()

    async def _run(
        self, what: str, access: str, text: Any, arguments: Mapping[str, Any]
    ) -> tuple[list[Row], neo4j.ResultSummary]:
        with translated(what, self._deadline):
            async with (
                asyncio.timeout(self._deadline.total_seconds()),
                self.driver.session(database=self.name, default_access_mode=access, fetch_size=-1) as session,
            ):
                result = await session.run(Query(text, timeout=self._timeout.total_seconds()), dict(arguments))
                return await _rows(result), await result.consume()


async def _rows(result: AsyncResult) -> list[Row]:
    """Not `result.data()`: that looks into every value for nodes, of which no statement gives any.

    Statements with many rows collect them into one, in a column `rows`: the driver waits for its socket anew for each record.
    """
    keys = result.keys()
    values = await result.values()
    if list(keys) == ["rows"]:
        return [row for (rows,) in values for row in rows]
    return [dict(zip(keys, record, strict=True)) for record in values]
