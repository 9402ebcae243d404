"""The query files are whole: each statement says its name, why it is, what it takes and gives."""

from __future__ import annotations

import re

import pytest

from graph.neo4j.cypher import Statement, _parse, query_files, statement, statements
from graph.neo4j.schema import migrations

ALL = [pytest.param(one, id=one.name) for file in query_files() for one in statements(file).values()]


def test_names_are_unique_over_all_files() -> None:
    names = [name for file in query_files() for name in statements(file)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("one", ALL)
def test_every_argument_is_named_in_the_header(one: Statement) -> None:
    assert all(argument in one.args for argument in re.findall(r"\$(\w+)", one.text))


def test_a_header_that_is_not_whole_is_refused() -> None:
    with pytest.raises(ValueError, match="needs name, why, args, gives"):
        _parse("test", "// name: x\n// why: y\n// gives: z\nRETURN 1;")
    with pytest.raises(ValueError, match="a statement"):
        _parse("test", "// name: x\n// why: y\n// args: none\n// gives: z\n")


def test_a_header_may_go_on_in_the_next_line() -> None:
    one = _parse("test", "// name:  x\n// why:   y\n// args:  a,\n//        b\n// gives: z\nRETURN 1;\n")
    assert (one.args, one.text) == ("a, b", "RETURN 1")


def test_an_unknown_statement_is_an_error() -> None:
    with pytest.raises(KeyError):
        statement("writer", "no such")


def test_migrations_are_numbered_without_a_hole_and_may_be_run_twice() -> None:
    assert [one.version for one in migrations()] == list(range(1, len(migrations()) + 1))
    for one in migrations():
        for text in one.statements:
            assert not text.startswith("CREATE") or "IF NOT EXISTS" in text
