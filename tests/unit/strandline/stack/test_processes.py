"""Detached processes: known by pid and birth, never mistaken for another."""

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from strandline.stack import processes
from strandline.stack.processes import ServerProcess

SOON = timedelta(seconds=20)
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[ServerProcess]:
    process = processes.spawn(["/bin/sleep", "600"], environment={}, log=tmp_path / "log")
    yield process
    processes.send(process, signal.SIGKILL)
    assert processes.wait_gone([process], SOON) == []


def test_a_process_lives_in_a_session_of_its_own_until_it_is_ended(sleeper: ServerProcess) -> None:
    assert processes.alive(sleeper)
    assert os.getsid(sleeper.pid) == sleeper.pid
    assert processes.memory_bytes(sleeper) > 0
    processes.send(sleeper, signal.SIGTERM)
    assert processes.wait_gone([sleeper], SOON) == []
    assert processes.memory_bytes(sleeper) == 0


def test_a_later_owner_of_the_pid_is_neither_taken_for_ours_nor_signalled(sleeper: ServerProcess) -> None:
    ours_long_gone = replace(sleeper, birth="another boot/1")
    assert not processes.alive(ours_long_gone)
    processes.send(ours_long_gone, signal.SIGKILL)
    assert processes.alive(sleeper)


def test_a_dead_child_that_nobody_waited_for_counts_as_gone(tmp_path: Path) -> None:
    process = processes.spawn(["/bin/true"], environment={}, log=tmp_path / "log")
    assert processes.wait_gone([process], SOON) == []
    processes.send(process, signal.SIGKILL)


def test_one_that_does_not_heed_is_still_there_at_the_deadline(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = processes.spawn([sys.executable, "-c", DEAF], environment={}, log=log)
    while "deaf" not in log.read_text():
        assert processes.alive(process)
    processes.send(process, signal.SIGTERM)
    assert processes.wait_gone([process], timedelta(milliseconds=200)) == [process]
    processes.send(process, signal.SIGKILL)
    assert processes.wait_gone([process], SOON) == []


def test_output_goes_to_the_log_and_the_environment_is_exactly_what_was_given(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = processes.spawn(["/usr/bin/env"], environment={"ONLY": "this"}, log=log)
    assert processes.wait_gone([process], SOON) == []
    assert log.read_text() == "ONLY=this\n"
    assert log.stat().st_mode & 0o777 == 0o600
