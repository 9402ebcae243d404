"""What an import tells people while it runs and when it ends."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from connectors.base import ReadOptions
from connectors.mail.mbox import MboxSource
from strandline.cli import imports
from strandline.importing import Import, Tally


@pytest.fixture
def job() -> Import:
    return Import(Path("mail.mbox"), MboxSource(), ReadOptions("ada"), Path("state"))


def test_a_pipe_gets_a_line_every_ten_seconds_and_none_before(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [100.0]
    monkeypatch.setattr(imports, "_now", lambda: now[0])
    with imports.progress() as observe:
        for at in (101.0, 109.0, 110.5, 115.0, 121.0):
            now[0] = at
            observe(Tally(total_bytes=200, done_bytes=100, sent=42))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["reading: 50 % read, 42 sent, 4/s", "reading: 50 % read, 42 sent, 2/s"]


def test_an_import_that_found_nothing_new_has_read_it_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr(imports, "_now", lambda: now)
    with imports.progress() as observe:
        now = 130.0
        observe(Tally(phase="done", total_bytes=200))
    assert "100 % read" in capsys.readouterr().err


def test_runs_that_stand_still_are_told_with_the_likely_cause(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr(imports, "_now", lambda: now)
    with imports.progress() as observe:
        now = 130.0
        observe(Tally(phase="remembering", sent=5, awaited=5, moved_at=101.0))
    assert "does a worker run?" in capsys.readouterr().err


def test_the_report_names_what_was_not_remembered(job: Import, capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally(
        phase="done",
        sent=10,
        complete=7,
        failed=1,
        deletes=1,
        wordless=1,
        skipped=Counter(bookkeeping=3, malformed=1),
    )
    imports.show_tally(tally, job)
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        "Sent       10",
        "Complete   7",
        "Failed     1",
        "Skipped    3  bookkeeping",
        "Skipped    1  malformed",
        "No words   1  nothing to remember in them",
        "Deletions  1  sent, but not applied yet: what they delete stays",
    ]
    assert "--report skipped.jsonl" in shown.err


def test_nothing_new_says_what_would_read_it_again(job: Import, capsys: pytest.CaptureFixture[str]) -> None:
    imports.show_tally(Tally(phase="done", sent_before=12), job)
    shown = capsys.readouterr()
    assert shown.out == "Nothing new in mail.mbox (12 by an earlier import of it).\n"
    assert "--again" in shown.err


@pytest.mark.parametrize(
    ("tally", "said"),
    [
        (None, "before anything was sent"),
        (Tally(sent=7), "7 sent. Nothing is lost; the same command goes on from here"),
        (
            Tally(phase="remembering", sent=7, awaited=3),
            "All 7 are sent and safe on the log; 3 are still being remembered",
        ),
    ],
)
def test_an_interruption_says_what_is_safe(tally: Tally | None, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    imports._tell_interrupted(tally)
    assert said in capsys.readouterr().err
