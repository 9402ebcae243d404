"""The examples of the commands' help and of the README, run as they are written, on the real services."""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.cli.root import COMMANDS
from strandline.stack import Addresses, default_folder
from tests.e2e.system import Place, own_place, running

pytestmark = [pytest.mark.connected, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
EXAMPLES = {example.split()[1]: example for _, example in COMMANDS}
SAID = {
    "remember": "complete  run ",
    "search": "Berlin  [since 2026-03-01]",
    "import": "Sent       12",
    "runs": "accepted (UTC)\tstate\t",
    "run": "complete  run ",
    "settings": "STRANDLINE_KAFKA__BOOTSTRAP",
    "version": '{"strandline": "',
}
"""What each command that ends by itself prints, in the order in which they make sense."""
RUNNING = {"serve": "listens at http://127.0.0.1:", "worker": "worker.ready", "up": "Strandline is up at http://"}
"""What each process says when it works."""


@pytest.fixture(scope="module")
def place(services: Addresses, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A whole Strandline, and a folder with a mailbox."""
    made = own_place(services, tmp_path_factory.mktemp("examples"))
    shutil.copy(ROOT / "strandline" / "demo_data" / "mail.mbox", made.folder)
    with running("strandline up", made) as up:
        up.until_it_says("Strandline is up at")
        yield made


def test_every_command_has_its_example_run_here() -> None:
    assert {*SAID, *RUNNING, "tail", "demo"} == set(EXAMPLES)


@pytest.mark.parametrize("name", SAID)
def test_an_example_runs_as_it_is_written(name: str, place: Place) -> None:
    done = place.run(EXAMPLES[name])
    assert done.returncode == 0, done.stderr
    assert SAID[name] in done.stdout


@pytest.mark.parametrize("name", RUNNING)
def test_a_process_starts_as_its_example_says_and_ends_when_it_is_told(name: str, place: Place) -> None:
    with running(EXAMPLES[name], place, place.free_port()) as process:
        process.until_it_says(RUNNING[name])
        assert process.stop(signal.SIGTERM) == 0, list(process.lines)[-20:]


def test_importing_again_from_the_start_adds_nothing(place: Place) -> None:
    place.run("strandline import mail.mbox --wait")
    before = json.loads(place.run("strandline runs --limit 100 --json").stdout)["runs"]
    again = json.loads(place.run("strandline import mail.mbox --again --wait --json").stdout)
    after = json.loads(place.run("strandline runs --limit 100 --json").stdout)["runs"]
    assert (again["sent"], again["complete"], again["failed"], again["awaited"]) == (12, 12, 0, 0)
    assert {run["run_id"] for run in after} == {run["run_id"] for run in before}
    assert {run["artifact_id"] for run in after} == {run["artifact_id"] for run in before}


def test_tail_shows_runs_as_they_happen(place: Place) -> None:
    with running(EXAMPLES["tail"], place) as tail:
        # It starts now, whenever that is: texts until one comes after.
        for number in range(20):
            assert place.run(f'strandline remember "Ben lives in house {number}." --wait complete').returncode == 0
            if any('"state": "complete"' in line for line in tail.lines):
                break
        assert tail.stop(signal.SIGINT) == 130
    events = [json.loads(line) for line in tail.lines if line.startswith("{")]
    assert {"token", "event_id", "run_id", "state", "at"} <= events[0].keys()
    assert "complete" in {event["state"] for event in events}


def test_the_demonstration_answers_what_the_sample_says_and_leaves_nothing(place: Place) -> None:
    folder = default_folder().with_name("demo")
    # Its services come from this account's cache.
    own = {name: value for name, value in place.environment.items() if not name.startswith("STRANDLINE_")}
    with running(EXAMPLES["demo"], place, {**own, "HOME": str(Path.home())}) as demo:
        for words in (
            "mail.mbox: 12 remembered",
            "Ada Marsh works at Beta Labs  [since 2026-06-01]",
            "Ada Marsh works at Acme  [since 2026-01-12, until 2026-05-31]",
            "kickoff meeting scheduled 2026-03-12",
            "local models",
            "<ended>",
        ):
            demo.until_it_says(words)
        assert demo.stop() == 0
    assert not folder.exists()


def test_the_readme_can_be_followed(place: Place) -> None:
    """Its commands, line by line; what starts or installs is tested elsewhere."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line.removeprefix("$ ").partition("   #")[0].strip() for block in blocks for line in block.splitlines()]
    commands = [line for line in lines if line.startswith("strandline ") and line != "strandline up"]
    assert len(commands) >= 4
    for command in commands:
        done = place.run(command)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    assert (
        "Beta Labs  [since 2026-06-01" in place.run(commands[-2]).stdout
        or "Beta Labs" in place.run(commands[-2]).stdout
    )
    assert "Acme" in place.run(commands[-1]).stdout
