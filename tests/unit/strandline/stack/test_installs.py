"""Obtaining servers: once, whole or not at all. Compilers and repositories are scripts here; the real ones are in the integration tests."""

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.stack import StackError, installs
from strandline.stack.services import WEAVIATE, GoCommand
from tests.unit.strandline.stack.doubles import first_on_path, go_that_builds, script, weaviate_like


def silent(line: str) -> None:
    pass


def test_a_server_is_built_once_and_then_taken_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = go_that_builds(tmp_path, "echo serving", monkeypatch)
    said: list[str] = []
    first = installs.install(weaviate_like(), tmp_path / "cache", said.append, threading.Event())
    second = installs.install(weaviate_like(), tmp_path / "cache", said.append, threading.Event())

    assert first == second == tmp_path / "cache" / "weaviate" / first.name
    assert (first / "weaviate-server").exists()
    assert notes.read_text().splitlines() == [f"install -v -modcacherw -ldflags=-s -w {_module()}@v{WEAVIATE.version}"]
    assert said[0].startswith(f"building version {WEAVIATE.version}")
    assert sorted(path.name for path in first.parent.iterdir()) == [first.name, "lock"]


def test_two_that_ask_at_once_get_one_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = go_that_builds(tmp_path, "echo serving", monkeypatch, delay="sleep 1")
    said: list[str] = []
    with ThreadPoolExecutor(2) as pool:
        asked = [
            pool.submit(installs.install, weaviate_like(), tmp_path / "cache", said.append, threading.Event())
            for _ in range(2)
        ]
    assert asked[0].result() == asked[1].result()
    assert len(notes.read_text().splitlines()) == 1
    assert "another process is fetching it; waiting" in said


def test_a_build_that_fails_shows_its_last_lines_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "bin" / "go", '[ "$1" = version ] && echo go1.26.0 || { echo no route to host; exit 3; }')
    first_on_path(tmp_path / "bin", monkeypatch)
    with pytest.raises(
        StackError, match=r"(?s)Weaviate .* could not be built \(go ended with 3\).*no route to host.*--docker"
    ):
        installs.install(weaviate_like(), tmp_path / "cache", silent, threading.Event())
    assert [path.name for path in (tmp_path / "cache" / "weaviate").iterdir()] == ["lock"]


def test_what_a_killed_build_left_is_cleared_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_that_builds(tmp_path, "echo serving", monkeypatch)
    left = tmp_path / "cache" / "weaviate" / ".building" / "modules"
    left.mkdir(parents=True)
    installs.install(weaviate_like(), tmp_path / "cache", silent, threading.Event())
    assert not left.exists()


def test_a_build_ends_when_it_is_no_longer_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go_that_builds(tmp_path, "echo serving", monkeypatch)
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(StackError, match="Run it again"):
        installs.install(weaviate_like(), tmp_path / "cache", silent, stopped)


def test_a_full_disk_is_told_before_the_build_begins(tmp_path: Path) -> None:
    assert isinstance(WEAVIATE.install, GoCommand)
    greedy = replace(WEAVIATE, install=replace(WEAVIATE.install, build_bytes=10**18))
    with pytest.raises(StackError, match=r"needs 1000000000 GB of disk .* Make room"):
        installs.install(greedy, tmp_path, silent, threading.Event())


def test_a_jar_list_is_read_with_and_without_classifiers(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"").hexdigest()
    file = tmp_path / "list.txt"
    file.write_text(f"# a comment\n{digest}  org.x:a:1.0\n{digest}  org.x:b:2.0:linux-x86_64\n")
    assert [jar.filename for jar in installs.read_jars(file)] == ["a-1.0.jar", "b-2.0-linux-x86_64.jar"]


def _module() -> str:
    assert isinstance(WEAVIATE.install, GoCommand)
    return WEAVIATE.install.module
