"""Brings the database to this release's schema: numbered migrations, each applied once, one process at a time."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib.resources import files
from typing import LiteralString

import structlog
from neo4j import AsyncSession, AsyncTransaction, Query

from graph.neo4j.cypher import statement
from graph.neo4j.database import Database
from graph.neo4j.errors import translated
from topics.errors import Outage, Permanent, Retryable

log = structlog.get_logger(__name__)

MIGRATION_TIMEOUT = timedelta(minutes=10)
"""For all of it, the wait for another process included."""

_FILE = re.compile(r"^(\d{4})_([a-z0-9_]+)\.cypher$")
_LOCK = statement("schema", "lock_schema")
_NOTE = statement("schema", "note_migration")
_CONSTRAINT = statement("schema", "constrain_schema")


class SchemaTooNew(Permanent):
    """The database was migrated by a newer release than this one."""

    code = "schema_too_new"


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file of `migrations/`."""

    version: int
    name: str
    statements: tuple[LiteralString, ...]


@cache
def migrations() -> tuple[Migration, ...]:
    """All migrations of this release, 1, 2, 3 … without a hole."""
    entries = files(__package__).joinpath("migrations").iterdir()
    found = sorted(
        (
            Migration(int(match[1]), match[2], _split(entry.read_text(encoding="utf-8")))
            for entry in entries
            if (match := _FILE.match(entry.name))
        ),
        key=lambda one: one.version,
    )
    if [one.version for one in found] != list(range(1, len(found) + 1)):
        raise ValueError("migrations must be numbered 1, 2, 3 … without a hole")
    return tuple(found)


async def migrate(database: Database) -> int:
    """Applies what is missing and gives the version reached. Processes that start at once wait for each other.

    Raises SchemaTooNew for a database of a newer release; Outage or Retryable as every other call.
    """
    with translated("bring the schema up to date", MIGRATION_TIMEOUT):
        async with asyncio.timeout(MIGRATION_TIMEOUT.total_seconds()):
            await _constrain(database)
            while await _step(database):
                pass
    return migrations()[-1].version


async def _constrain(database: Database) -> None:
    """The lock's own constraint. Two processes may collide on it before there is a lock: whoever loses finds it there."""
    for attempt in range(10):
        try:
            await database.write("constrain the schema node", _CONSTRAINT)
            return
        except (Retryable, Permanent) as error:
            if attempt == 9 or isinstance(error, Outage):
                raise
            await asyncio.sleep(0.05 * 2**attempt)


async def _step(database: Database) -> bool:
    """One migration under the lock; False if none is missing.

    A transaction may not both write and change the schema, so one holds the lock (it dies with its process) and another session does the work.
    """
    seconds = MIGRATION_TIMEOUT.total_seconds()
    async with (
        database.driver.session(database=database.name) as locker,
        await locker.begin_transaction(timeout=seconds) as tx,
    ):
        version = await _locked_version(tx)
        latest = migrations()[-1].version
        if version > latest:
            raise SchemaTooNew(
                f"the database has schema {version}, this release knows {latest}: run a release that knows it, or use another database"
            )
        if version == latest:
            return False
        migration = migrations()[version]
        async with database.driver.session(database=database.name) as worker:
            await _apply(worker, migration, seconds)
        await tx.run(
            _NOTE.text, {"version": migration.version, "migration": f"{migration.version:04}_{migration.name}"}
        )
        await tx.commit()
    log.info("schema.migrated", version=migration.version, migration=migration.name)
    return True


async def _locked_version(tx: AsyncTransaction) -> int:
    record = await (await tx.run(_LOCK.text)).single(strict=True)
    return int(record["version"])


async def _apply(session: AsyncSession, migration: Migration, seconds: float) -> None:
    for text in migration.statements:
        result = await session.run(Query(text, timeout=seconds))
        await result.consume()


def _split(source: str) -> tuple[LiteralString, ...]:
    """Statements end with a semicolon at a line's end; whole-line comments are left out."""
    lines = [line for line in source.splitlines() if not line.lstrip().startswith("//")]
    parts = (part.strip() for part in re.split(r";[ ]*$", "\n".join(lines), flags=re.MULTILINE))
    return tuple(part for part in parts if part)
