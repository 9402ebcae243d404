"""What is written from code is as the code would write it now, however the machine that asks is set up."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.generated import GENERATED, ROOT, made, stale, write


@pytest.mark.parametrize("path", GENERATED)
def test_a_generated_file_is_fresh(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == made(GENERATED[path]), "run `make docs`"


def test_the_width_of_the_terminal_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = made(GENERATED["docs/cli.md"])
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("STRANDLINE_STACK_FOLDER", "/elsewhere")
    assert made(GENERATED["docs/cli.md"]) == before


def test_writing_makes_what_is_stale_fresh(tmp_path: Path) -> None:
    assert set(stale(tmp_path)) == set(GENERATED)
    assert set(write(tmp_path)) == set(GENERATED)
    assert stale(tmp_path) == []
