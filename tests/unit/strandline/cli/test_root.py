"""The command line as a whole: quick help, exit codes, how errors are told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from strandline.cli import root
from strandline.cli.reference import commands
from topics.errors import Outage, Refused

HEAVY = (
    "aiohttp",
    "aiokafka",
    "faust",
    "neo4j",
    "numpy",
    "onnxruntime",
    "pydantic",
    "rich",
    "spacy",
    "structlog",
    "weaviate",
)


def strandline(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "strandline", *arguments], capture_output=True, text=True, cwd=folder, check=False
    )


def test_help_loads_nothing_heavy() -> None:
    code = f"""
import sys
from strandline.cli import root
root.run(["--help"])
print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "remember" in done.stdout
    assert done.stderr == "[]\n"


def test_every_command_has_help_and_an_example() -> None:
    for name, command in commands():
        if not hasattr(command, "commands"):
            assert command.help, name
            assert "Example:" in (command.epilog or ""), name


@pytest.mark.parametrize(
    "arguments",
    [
        ["nothing-of-that-name"],
        ["search"],
        ["search", "x", "--limit", "0"],
        ["search", "x", "--as-of", "yesterday"],
        ["search", "x", "--as-of", "2026-03-01T09:30:00"],
        ["remember"],
        ["remember", "a text", "--file", __file__],
        ["run", "no-uuid"],
        ["up", "--docker", "--native"],
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert root.run(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Error" in shown.err
    assert "Traceback" not in shown.err


def test_an_instant_without_a_zone_is_told_how_to_get_one(capsys: pytest.CaptureFixture[str]) -> None:
    root.run(["search", "x", "--as-of", "2026-03-01T09:30:00"])
    assert "write 2026-03-01T09:30:00Z for UTC" in " ".join(capsys.readouterr().err.split())


def test_no_server_is_one_line_with_the_cure_and_ends_with_1() -> None:
    done = strandline("search", "x", "--url", "http://127.0.0.1:1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "strandline serve" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("place", ["before", "behind"])
def test_a_traceback_comes_with_debug_only(place: str) -> None:
    arguments = ["search", "x", "--url", "http://127.0.0.1:1"]
    done = strandline(*(["--debug", *arguments] if place == "before" else [*arguments, "--debug"]))
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_a_wrong_setting_refuses_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRANDLINE_URLL", "http://127.0.0.1:1")
    done = strandline("runs")
    assert done.returncode == 1
    assert "did you mean STRANDLINE_URL?" in done.stderr


@pytest.mark.parametrize("error", [RuntimeError("a fault of ours"), KeyError("name")])
def test_a_fault_of_ours_says_so_without_a_traceback(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        raise error

    monkeypatch.setattr(root, "COMMANDS", ((fails, ""),))
    assert root.run(["fails"]) == 1
    shown = capsys.readouterr().err
    assert type(error).__name__ in shown
    assert root.BUG in shown


def test_an_outage_names_the_command_that_helps() -> None:
    assert "strandline up" in root.cure(Outage("kafka", "no answer"))
    assert root.cure(Refused("too long")) == ""


def test_a_foreign_package_of_our_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "__init__.py").touch()
    done = subprocess.run(
        [sys.executable, "-m", "strandline", "version"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 1
    assert "`agents` is not Strandline's" in done.stderr


def test_version_as_json_is_json_alone() -> None:
    done = strandline("version", "--json")
    assert done.stderr == ""
    assert done.stdout.startswith('{"strandline": "')


def test_standard_input_that_is_no_text_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "latin"
    file.write_bytes("Jörg".encode("latin-1"))
    assert root.run(["remember", "--file", str(file)]) == 1
    assert "not UTF-8 at byte 1" in capsys.readouterr().err
