"""`strandline stack` as people and scripts see it: output, errors, exit codes."""

import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from strandline.cli.stack import app
from strandline.stack import SERVICES, state
from strandline.stack.compose import with_variables

COMMANDS = ("up", "down", "status", "logs", "env", "compose")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A stack that was made and does not run."""
    state.save(tmp_path, state.State("native", state.choose_ports(standard=False)))
    return tmp_path


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_in_its_help(command: str) -> None:
    code, text, _ = run(command, "--help")
    assert code == 0
    assert "Example:" in text
    assert f"strandline stack {command}" in text


@pytest.mark.parametrize("command", ["up --docker --native", "logs postgres", "logs kafka --lines 0", "start"])
def test_wrong_usage_ends_with_2(command: str) -> None:
    assert run(*shlex.split(command))[0] == 2


@pytest.mark.parametrize("command", ["down", "status", "env", "logs kafka"])
def test_where_no_stack_is_the_error_says_how_to_make_one_and_the_code_is_1(command: str, tmp_path: Path) -> None:
    code, text, error = run(*shlex.split(command), "--folder", str(tmp_path))
    assert (code, text) == (1, "")
    assert f"There is no stack in {tmp_path}. `strandline stack up` makes one." in error


def test_the_status_of_a_stack_that_stands_still_is_a_row_for_each_service_and_code_1(folder: Path) -> None:
    code, text, _ = run("status", "--folder", str(folder))
    assert code == 1
    head, *rows = (line.split("\t") for line in text.splitlines())
    assert head == ["service", "version", "state", "address", "process", "memory"]
    assert [(row[0], row[2]) for row in rows] == [(name, "stopped") for name in SERVICES]


def test_the_status_as_json_is_one_document(folder: Path) -> None:
    code, text, _ = run("status", "--folder", str(folder), "--json")
    assert code == 1
    assert [(row["name"], row["running"], row["healthy"]) for row in json.loads(text)] == [
        (name, False, False) for name in SERVICES
    ]


def test_env_prints_what_a_shell_can_evaluate(folder: Path) -> None:
    code, text, _ = run("env", "--folder", str(folder))
    assert code == 0
    printed = dict(shlex.split(line)[1].split("=", 1) for line in text.splitlines())
    assert printed == json.loads(run("env", "--folder", str(folder), "--json")[1])
    assert printed["STRANDLINE_NEO4J__PASSWORD"] == state.secret(folder, SERVICES["neo4j"])


def test_the_folder_may_come_from_the_settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from strandline.settings import load

    monkeypatch.setenv("STRANDLINE_STACK_FOLDER", str(folder))
    load.cache_clear()
    try:
        assert run("env")[1] == run("env", "--folder", str(folder))[1]
    finally:
        load.cache_clear()


def test_logs_of_a_service_that_never_ran_are_empty(folder: Path) -> None:
    assert run("logs", "kafka", "--folder", str(folder))[:2] == (0, "\n")


def test_logs_show_the_last_lines(folder: Path) -> None:
    log = folder / "neo4j" / "log"
    log.parent.mkdir()
    log.write_text("one\ntwo\nthree\n")
    assert run("logs", "neo4j", "--lines", "2", "--folder", str(folder))[1] == "two\nthree\n"
    as_json = json.loads(run("logs", "neo4j", "--lines", "2", "--folder", str(folder), "--json")[1])
    assert as_json == {"service": "neo4j", "lines": ["two", "three"]}


def test_down_of_a_stack_that_stands_still_is_no_error(folder: Path) -> None:
    code, text, _ = run("down", "--folder", str(folder))
    assert code == 0
    assert "Data is kept" in text


def test_compose_as_json_is_the_same_document() -> None:
    assert json.loads(run("compose", "--json")[1]) == with_variables()


def test_up_of_a_stack_made_the_other_way_is_refused(folder: Path) -> None:
    code, _, error = run("up", "--docker", "--folder", str(folder))
    assert code == 1
    assert "was made with --native" in error
