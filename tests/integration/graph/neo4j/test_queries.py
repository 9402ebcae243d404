"""Every statement finds its rows by an index: cost must not grow with the graph."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest

from graph.neo4j.cypher import Statement, query_files, statements
from graph.neo4j.database import Database
from graph.neo4j.schema import migrate
from strandline.stack import Addresses
from tests.contract.backends import neo4j_database

pytestmark = pytest.mark.connected

STATEMENTS = [pytest.param(one, id=one.name) for file in query_files() for one in statements(file).values()]
SCANS = ("AllNodesScan", "NodeByLabelScan", "AllRelationshipsScan", "NodeIndexScan", "RelationshipTypeScan")


@pytest.fixture
async def database(services: Addresses) -> AsyncIterator[Database]:
    database = neo4j_database(services)
    await migrate(database)
    yield database
    await database.close()


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_no_statement_scans(database: Database, statement: Statement) -> None:
    plan = await database.explain(statement, {})
    found = [_kind(step) for step in _steps(plan)]
    assert not [kind for kind in found if kind.startswith(SCANS)]


@pytest.mark.parametrize("statement", STATEMENTS)
async def test_a_product_is_only_of_single_rows(database: Database, statement: Statement) -> None:
    plan = await database.explain(statement, {})
    for product in (step for step in _steps(plan) if _kind(step) == "CartesianProduct"):
        assert all(_is_single(child) for child in product["children"])


@pytest.mark.parametrize("name", ["runs_of_user", "runs_of_dataset", "newest_facts"])
async def test_the_newest_come_off_the_index_in_order(database: Database, name: str) -> None:
    statement = next(one.values[0] for one in STATEMENTS if one.id == name)
    assert isinstance(statement, Statement)
    plan = await database.explain(statement, {})
    seeks = [_kind(step).startswith("NodeIndexSeek") for step in _steps(plan)]
    assert any(seeks)
    assert "Sort" not in [_kind(step) for step in _steps(plan)]
    assert "Limit" in [_kind(step) for step in _steps(plan)]


def _steps(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for child in plan.get("children", ()):
        yield from _steps(child)


def _kind(step: Mapping[str, Any]) -> str:
    return str(step["operatorType"]).partition("@")[0]


def _is_single(step: Mapping[str, Any]) -> bool:
    """One node by a unique id, or a product of such."""
    kind = _kind(step)
    return kind.startswith("NodeUniqueIndexSeek") or (
        kind == "CartesianProduct" and all(map(_is_single, step["children"]))
    )
