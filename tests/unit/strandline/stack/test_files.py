"""Locks, private files and the tails of logs."""

import threading
from pathlib import Path

from strandline.stack import files


def test_the_second_one_waits_for_the_lock_and_says_so(tmp_path: Path) -> None:
    order: list[str] = []
    waiting = threading.Event()

    def second() -> None:
        with files.locked(tmp_path / "lock", waiting.set):
            order.append("second")

    with files.locked(tmp_path / "lock", lambda: None):
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(20)
        order.append("first")
    thread.join(20)
    assert order == ["first", "second"]


def test_a_private_file_is_replaced_whole_and_readable_by_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "made" / "secret"
    files.write_private(file, "one")
    files.write_private(file, "two")
    assert file.read_text() == "two"
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(file.parent.iterdir()) == [file]


def test_the_tail_of_a_log_is_its_last_lines_and_nothing_if_there_is_none(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert files.tail(log, 2) == ""
    log.write_bytes(b"x" * 100_000 + b"\none\n\xff two\n")
    assert files.tail(log, 2) == "one\n� two"
