from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from connectors.mail.maildir import MaildirSource
from connectors.mail.mbox import MboxSource
from connectors.registry import detect_source
from tests.unit.connectors.reading import OPTIONS, events, letter, read_all, skipped
from topics.errors import Refused

FROM = b"From ann@example.com Mon Mar  2 10:00:00 2026\n"


def numbered(number: int, body: str = "Hello.") -> bytes:
    return letter(body).replace(b"<m1@", b"<m%d@" % number)


def mbox(path: Path, *mails: bytes) -> Path:
    path.write_bytes(b"".join(FROM + each + b"\n\n" for each in mails))
    return path


def ids(path: Path) -> list[str]:
    return [event.object_id for event in events(read_all(MboxSource(), path))]


def test_an_mbox_is_read_mail_by_mail_in_order(tmp_path: Path) -> None:
    path = mbox(tmp_path / "a.mbox", *(numbered(n) for n in range(5)))
    items = read_all(MboxSource(), path)
    assert [event.object_id for event in events(items)] == [f"m{n}@example.com" for n in range(5)]
    assert items[-1].done_bytes == MboxSource().size(path)
    assert [item.done_bytes for item in items] == sorted(item.done_bytes for item in items)


def test_an_interrupted_import_goes_on_behind_any_item(tmp_path: Path) -> None:
    path = mbox(tmp_path / "a.mbox", *(numbered(n) for n in range(5)))
    items = read_all(MboxSource(), path)
    for number, item in enumerate(items):
        rest = read_all(MboxSource(), path, replace(OPTIONS, after=item.cursor))
        assert [each.cursor for each in rest] == [each.cursor for each in items[number + 1 :]]


def test_a_rewritten_file_is_not_resumed_in_the_middle(tmp_path: Path) -> None:
    path = mbox(tmp_path / "a.mbox", numbered(1), numbered(2))
    cursor = read_all(MboxSource(), path)[0].cursor
    mbox(path, numbered(3, "Other."), numbered(2))
    for after in (cursor, "rubbish", "9" * 30 + "-x"):
        with pytest.raises(Refused, match="changed"):
            read_all(MboxSource(), path, replace(OPTIONS, after=after))


def test_the_same_mail_has_the_same_id_in_any_kind_of_file(tmp_path: Path) -> None:
    raw = letter("From here on\nhello.\n>From there too")
    single = tmp_path / "one.eml"
    single.write_bytes(raw.replace(b"\n", b"\r\n"))
    box = mbox(tmp_path / "a.mbox", raw.replace(b"\n>From", b"\n>>From").replace(b"\nFrom here", b"\n>From here"))
    (tmp_path / "md" / "cur").mkdir(parents=True)
    (tmp_path / "md" / "new").mkdir()
    (tmp_path / "md" / "new" / "1.a").write_bytes(raw)
    found = [events(read_all(detect_source(path), path)) for path in (single, box, tmp_path / "md")]
    assert len({event.event_id for each in found for event in each}) == 1
    assert [len(each) for each in found] == [1, 1, 1]


def test_a_sentence_that_begins_with_from_begins_no_mail(tmp_path: Path) -> None:
    body = "x\n\nFrom the start it was 10:30 in 2026.\n\nFrom nowhere\nwords"
    assert ids(mbox(tmp_path / "a.mbox", numbered(1, body), numbered(2))) == ["m1@example.com", "m2@example.com"]


@pytest.mark.parametrize(
    "line",
    [
        b"From - Mon Mar  2 10:00:00 2026\n",
        b"From ???@???\n",
        b"From \n",
        b"From a b c\r\n",
        b"From a@b Mon, 2 Mar 2026 10:00 +0100\n",
    ],
)
def test_a_bad_from_line_still_begins_a_mail(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "a.mbox"
    path.write_bytes(line + numbered(1) + b"\n\n" + line + numbered(2))
    assert ids(path) == ["m1@example.com", "m2@example.com"]


def test_a_missing_blank_line_and_other_line_ends_are_forgiven(tmp_path: Path) -> None:
    path = tmp_path / "a.mbox"
    path.write_bytes(FROM + numbered(1) + b"\n" + FROM + numbered(2))
    assert len(ids(path)) == 2
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert len(ids(path)) == 2
    assert events(read_all(MboxSource(), path))[0].text == "Hello."


def test_a_cut_end_nuls_and_a_line_without_end_are_read(tmp_path: Path) -> None:
    whole = letter("--b\nContent-Type: text/plain\n\nbegun", 'Content-Type: multipart/mixed; boundary="b"')
    path = mbox(tmp_path / "a.mbox", numbered(1, "a\0b"), numbered(2, "x" * 300_000))
    path.write_bytes(path.read_bytes() + FROM + whole[:-2])
    texts = [event.text for event in events(read_all(MboxSource(), path))]
    assert [texts[0], len(texts[1]) > 250_000, texts[2]] == ["ab", True, "beg"]


def test_a_mail_over_the_limit_is_skipped_and_the_next_is_read(tmp_path: Path) -> None:
    path = mbox(tmp_path / "a.mbox", numbered(1, "word\n" * 10_000), numbered(2))
    items = read_all(MboxSource(), path, replace(OPTIONS, max_item_bytes=10_000))
    assert [each.reason for each in skipped(items)] == ["oversized"]
    assert [event.object_id for event in events(items)] == ["m2@example.com"]


def test_a_mail_without_date_takes_the_from_line_then_the_files_time(tmp_path: Path) -> None:
    path = tmp_path / "a.mbox"
    path.write_bytes(FROM + b"Subject: x\n\nHello.\n\nFrom x\nSubject: y\n\nHello.\n")
    os.utime(path, (1_700_000_000, 1_700_000_000))
    first, second = events(read_all(MboxSource(), path))
    assert first.occurred_at == datetime(2026, 3, 2, 10, tzinfo=UTC)
    assert second.occurred_at == datetime.fromtimestamp(1_700_000_000, UTC)
    assert first.flags == ("date_header_missing",)


@pytest.mark.parametrize("content", [b"%PDF-1.7", b"hello there", b"{}", b"\x89PNG\r\n\0\0", b"key = value\n"])
def test_a_file_of_another_kind_is_refused_with_what_was_expected(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(content)
    assert not MboxSource().detect(path)
    with pytest.raises(Refused, match="expected"):
        read_all(MboxSource(), path)
    with pytest.raises(Refused, match="none of the kinds"):
        detect_source(path)
    with pytest.raises(Refused, match="does not exist"):
        detect_source(tmp_path / "nowhere")


def maildir(root: Path) -> Path:
    for folder in ("", ".Sent", "Work"):
        for part in ("cur", "new", "tmp"):
            (root / folder / part).mkdir(parents=True)
    (root / "cur" / "1700.a:2,S").write_bytes(numbered(1))
    (root / "new" / "1800.b").write_bytes(numbered(2))
    (root / "cur" / "1900.c:2,ST").write_bytes(numbered(3))
    (root / "cur" / "1950.d:2,D").write_bytes(numbered(4))
    (root / ".Sent" / "cur" / "1.e:2,S").write_bytes(numbered(5))
    (root / "Work" / "cur" / "1.f!2,S").write_bytes(numbered(6))
    (root / "tmp" / "1.g").write_bytes(numbered(7))
    (root / "cur" / "2000.h").symlink_to("/etc/hostname")
    return root


def test_a_maildir_is_read_with_its_folders_and_flags(tmp_path: Path) -> None:
    items = read_all(MaildirSource(), maildir(tmp_path / "md"))
    found = [(event.object_id[:2], event.container.name if event.container else "") for event in events(items)]
    assert found == [("m1", "INBOX"), ("m2", "INBOX"), ("m5", "Sent"), ("m6", "Work")]
    assert [each.reason for each in skipped(items)] == ["trashed", "draft", "no_file"]


def test_a_maildir_goes_on_also_after_a_mail_was_seen(tmp_path: Path) -> None:
    root = maildir(tmp_path / "md")
    items = read_all(MaildirSource(), root)
    (root / "new" / "1800.b").rename(root / "cur" / "1800.b:2,S")
    for number, item in enumerate(items):
        rest = read_all(MaildirSource(), root, replace(OPTIONS, after=item.cursor))
        assert [each.cursor for each in rest] == [each.cursor for each in items[number + 1 :]]


def test_a_folder_of_single_mails_is_read(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.eml").write_bytes(numbered(1))
    (tmp_path / "sub" / "b.EML").write_bytes(numbered(2))
    (tmp_path / "sub" / os.fsdecode(b"\xff.eml")).write_bytes(numbered(3))
    assert detect_source(tmp_path).name == "maildir"
    assert sorted(event.object_id for event in events(read_all(MaildirSource(), tmp_path))) == [
        "m1@example.com",
        "m2@example.com",
        "m3@example.com",
    ]


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="holds no mail"):
        read_all(MaildirSource(), tmp_path)
