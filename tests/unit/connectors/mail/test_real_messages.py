"""The messages that CPython tests its own mail parser with: nobody wrote them for us, and most are odd on purpose.

They come with the interpreter (`test.test_email`). An interpreter without them cannot run these tests, and says so.
"""

from __future__ import annotations

from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from connectors.base import Item
from connectors.mail.maildir import MaildirSource
from connectors.mail.mbox import MboxSource
from tests.unit.connectors.reading import events, read_all, skipped


@pytest.fixture(scope="module")
def messages() -> list[bytes]:
    spec = find_spec("test.test_email") if find_spec("test") else None
    folder = Path(spec.origin).parent / "data" if spec and spec.origin else None
    found = sorted(folder.glob("msg_*.txt")) if folder else []
    if not found:
        pytest.skip(
            "this Python has no test.test_email data; install the distribution's test package (libpython3-testsuite, python3-test)"
        )
    return [path.read_bytes() for path in found]


def report(title: str, items: list[Item]) -> str:
    flags = Counter(flag for event in events(items) for flag in event.flags)
    lines = [
        f"{title}: {len(items)} mails, {len(events(items))} events of {len({e.object_id for e in events(items)})} messages, flags {dict(flags)}"
    ]
    return "\n".join(lines + [f"  skipped {each.where}: {each.reason} ({each.detail})" for each in skipped(items)])


def test_as_an_mbox_every_message_is_an_event_or_named_with_the_reason(messages: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "cpython.mbox"
    with path.open("wb") as file:
        for raw in messages:
            own, _, rest = raw.partition(b"\n")
            content = (rest if own.startswith(b"From ") else raw).replace(b"\nFrom ", b"\n>From ")
            file.write(b"From MAILER-DAEMON Thu Jan  1 00:00:00 2026\n" + content + b"\n\n")
    items = read_all(MboxSource(), path)
    print(report("mbox", items))
    assert len(items) == len(messages)
    assert {each.reason for each in skipped(items)} <= {"empty"}
    assert len(skipped(items)) <= 2


def test_as_a_maildir_every_message_is_an_event_or_named_with_the_reason(messages: list[bytes], tmp_path: Path) -> None:
    for part in ("cur", "new", "tmp"):
        (tmp_path / part).mkdir()
    for number, raw in enumerate(messages):
        (tmp_path / "cur" / f"{1_700_000_000 + number}.{number}.host:2,S").write_bytes(raw)
    items = read_all(MaildirSource(), tmp_path)
    print(report("maildir", items))
    assert len(items) == len(messages)
    assert {each.reason for each in skipped(items)} <= {"empty"}
    assert len(skipped(items)) <= 2
