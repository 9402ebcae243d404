"""`strandline topics` without a broker."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from strandline.cli.topics import app
from topics.errors import Refused
from topics.registry import TOPICS

COMMANDS = ("list", "create", "check", "lag", "rewind")


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and standard output."""
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_in_its_help(command: str) -> None:
    code, text = run(command, "--help")
    assert code == 0
    assert f"Example: strandline topics {command}" in text


def test_the_list_has_a_row_for_each_topic() -> None:
    code, text = run("list")
    assert code == 0
    head, *rows = (line.split("\t") for line in text.splitlines())
    assert head == ["topic", "record", "partitions", "kept", "sent by", "read by"]
    assert [row[0] for row in rows] == [spec.name for spec in TOPICS]


def test_the_list_as_json_is_one_document() -> None:
    code, text = run("list", "--json")
    assert code == 0
    first = json.loads(text)[0]
    assert first["name"] == "source.events"
    assert first["retention_days"] == 3


def test_rewinding_a_topic_that_does_not_exist_is_refused_before_any_broker_is_asked() -> None:
    result = CliRunner().invoke(app, ["rewind", "remember.run", "--yes"])
    assert isinstance(result.exception, Refused)
    assert "`strandline topics list` shows them" in str(result.exception)
