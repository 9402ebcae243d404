"""An mbox file, read as a stream: one mail in memory at a time, whatever the file's size. Also one mail alone (.eml).

Where a mail begins is a guess in every mbox: a line `From …` behind an empty line, which a text may hold too. It counts as a beginning if it
carries the date as mailers write it there, or if a mail's header line follows. Line ends may be \\n or \\r\\n; the last mail may be cut short.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from connectors.base import Item, ReadOptions, Skipped
from connectors.canonical import clean_line, sha256_hex
from connectors.mail.headers import instant
from connectors.mail.normalize import Found, normalize
from topics.errors import Refused
from topics.records import Container, SourceEvent

_LINE_BYTES = 64 * 1024
_TAIL_BYTES = 256
_DAYS, _MONTHS = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)", rb"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_ASCTIME = re.compile(
    rb"^From .{0,400}?" + _DAYS + rb" +" + _MONTHS + rb" +\d{1,2} +\d{1,2}:\d{2}(?::\d{2})?\b.{0,20}\b(?:19|20)\d{2}\b"
)
_DATED = re.compile(rb"^From .{0,400}?\b\d{1,2}:\d{2}(?::\d{2})?\b.{0,40}\b(?:19|20)\d{2}\b")
_STAMP = re.compile(
    r"(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\s+)?([A-Z][a-z]{2})\s+(\d{1,2})\s+(\d{1,2}:\d{2}(?::\d{2})?)(?:\s+[A-Z]{3,5})?(?:\s+([+-]\d{4}))?\s+(\d{4})"
)
_KNOWN_HEADER = re.compile(
    rb"^(?:>?From |(?:return-path|received|date|from|to|cc|bcc|subject|message-id|mime-version|content-[a-z-]+|delivered-to|status|sender|reply-to|"
    rb"in-reply-to|references|delivery-date|envelope-to|list-[a-z]+|precedence|dkim-signature|authentication-results|newsgroups|path|x-[a-z0-9-]+)[ \t]*:)",
    re.IGNORECASE,
)
_ANY_HEADER = re.compile(rb"^[!-9;-~]{1,100}[ \t]*:")
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)


@dataclass(slots=True)
class _Raw:
    """One mail as it lies in the file."""

    start: int
    end: int
    from_line: bytes
    content: bytearray
    size: int = 0
    """Of the content, also where it was too big to keep."""


def looks_like_mail(head: bytes) -> bool:
    """Whether bytes begin as a mail does: a header line that mails have, within the first lines, and only header lines before it."""
    for line in head.lstrip().splitlines()[:40]:
        if _KNOWN_HEADER.match(line):
            return True
        if not _ANY_HEADER.match(line) and not line.startswith((b" ", b"\t")):
            return False
    return False


class MboxSource:
    """See the module. Cursor: the offset behind the mail and a hash of the bytes before it, which tells a file that was rewritten."""

    name = "mbox"

    def detect(self, path: Path) -> bool:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            head = file.read(_LINE_BYTES)
        if not head.strip():
            return path.suffix.lower() in (".mbox", ".mbx")
        return b"\0" not in head[:512] and (_is_mbox(head) or looks_like_mail(head))

    def size(self, path: Path) -> int:
        return _checked(path).stat().st_size

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        stat = _checked(path).stat()
        arrived_at = datetime.fromtimestamp(stat.st_mtime, UTC)
        place = clean_line(path.name.encode("utf-8", "backslashreplace").decode())
        container = Container(id=place, name=place.removesuffix(path.suffix), kind="mailbox")
        with path.open("rb") as file:
            head = file.read(_LINE_BYTES)
            if head.strip() and not (_is_mbox(head) or looks_like_mail(head)):
                raise Refused(
                    f"{path} is no mbox: a line `From …` or a mail's header was expected at its start", field="path"
                )
            start = _resume(file, options.after, path)
            mails = (
                _split(file, start, options.max_item_bytes)
                if _is_mbox(head)
                else _alone(file, start, options.max_item_bytes)
            )
            for mail in mails:
                found = Found(
                    self.name,
                    f"{place}, byte {mail.start}",
                    container,
                    _from_line_date(mail.from_line) or arrived_at,
                )
                outcome = read_mail(bytes(mail.content), mail.size, found, options)
                yield Item(outcome, f"{mail.end}-{_tail_hash(file, mail.end)}", mail.end)


def read_mail(content: bytes, size: int, found: Found, options: ReadOptions) -> SourceEvent | Skipped:
    """The event of one mail, or why there is none: also when our own code fails on it, because the next mail must be read."""
    if size > options.max_item_bytes:
        return Skipped(found.where, "oversized", f"{size} bytes; at most {options.max_item_bytes} are read")
    try:
        return normalize(content.replace(b"\r\n", b"\n").replace(b"\r", b"\n"), found, options)
    except Exception as error:  # noqa: BLE001 - one mail never stops an import; the report names it.
        return Skipped(
            found.where, "unreadable", f"{type(error).__name__} while it was parsed; please report this mail"
        )


def _checked(path: Path) -> Path:
    if not path.is_file():
        raise Refused(f"{path} is no file; an mbox file or one mail was expected", field="path")
    return path


def _is_mbox(head: bytes) -> bool:
    return head.lstrip(b"\r\n").startswith(b"From ")


def _split(file: BinaryIO, start: int, max_bytes: int) -> Iterator[_Raw]:
    """The mails from an offset on. More than `max_bytes` of one are counted, not kept."""
    mail: _Raw | None = None
    blank_before = True
    for offset, line, following, whole in _lines(file, start):
        if whole and line.startswith(b"From ") and _begins(line, following, blank_before):
            if mail is not None:
                yield _finished(mail, offset)
            mail = _Raw(offset, offset, line.rstrip(), bytearray())
        elif mail is not None:
            mail.size += len(line)
            if mail.size <= max_bytes:
                mail.content += line
            else:
                mail.content.clear()
        blank_before = whole and not line.strip(b"\r\n")
    if mail is not None:
        yield _finished(mail, file.tell())


def _begins(line: bytes, following: bytes, blank_before: bool) -> bool:
    if _ASCTIME.match(line):
        return blank_before or bool(_KNOWN_HEADER.match(following))
    if not blank_before:
        return False
    return bool(_KNOWN_HEADER.match(following)) or (bool(_DATED.match(line)) and bool(_ANY_HEADER.match(following)))


def _finished(mail: _Raw, end: int) -> _Raw:
    mail.end = end
    if mail.content:
        mail.content = bytearray(_QUOTED_FROM.sub(rb"\1", bytes(mail.content)))
    return mail


def _lines(file: BinaryIO, start: int) -> Iterator[tuple[int, bytes, bytes, bool]]:
    """(offset, line or a piece of a very long one, the next, whether it is the start of a line)."""
    file.seek(start)
    offset, line = start, file.readline(_LINE_BYTES)
    at_start = True
    while line:
        following = file.readline(_LINE_BYTES)
        yield offset, line, following, at_start
        at_start = line.endswith(b"\n")
        offset, line = offset + len(line), following


def _alone(file: BinaryIO, start: int, max_bytes: int) -> Iterator[_Raw]:
    size = file.seek(0, 2)
    if start >= size:
        return
    file.seek(0)
    yield _Raw(0, size, b"", bytearray(file.read() if size <= max_bytes else b""), size)


def _from_line_date(line: bytes) -> datetime | None:
    """The date of a From_ line (asctime, UTC unless it names an offset); None if it has none."""
    match = _STAMP.search(line.decode("ascii", "replace"))
    if match is None:
        return None
    month, day, time, zone, year = match.groups()
    return instant(f"{day} {month} {year} {time} {zone or '+0000'}")[0]


def _tail_hash(file: BinaryIO, end: int) -> str:
    here = file.tell()
    file.seek(max(0, end - _TAIL_BYTES))
    tail = file.read(min(end, _TAIL_BYTES))
    file.seek(here)
    return sha256_hex(tail)[:16]


def _resume(file: BinaryIO, cursor: str, path: Path) -> int:
    if not cursor:
        return 0
    offset, _, seen = cursor.partition("-")
    if not offset.isdigit() or len(offset) > 18 or _tail_hash(file, int(offset)) != seen:
        raise Refused(
            f"{path} was changed since the import stopped; read it from its start (known mails add nothing)",
            field="after",
        )
    return int(offset)
