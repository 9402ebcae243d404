"""A Maildir (with its folders, Maildir++ or nested), or a folder of .eml files.

Order: folder, then the mail's unique name, which begins with the second of its delivery. Flags in a file's name (`:2,RS`) change while
people read and are no part of the cursor. Symbolic links are not followed: a mail folder has none, and one could lead anywhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from connectors.base import Item, ReadOptions, Skipped
from connectors.canonical import clean_line
from connectors.mail.mbox import read_mail
from connectors.mail.normalize import Found
from topics.errors import Refused
from topics.records import Container, SourceEvent

_INBOX = "INBOX"


@dataclass(frozen=True, slots=True, order=True)
class _File:
    folder: str
    unique: str
    path: Path
    flags: str

    @property
    def cursor(self) -> str:
        return f"{self.folder}/{self.unique}"


class MaildirSource:
    """See the module. Cursor: folder and unique name of the mail. A mail that is flagged as trashed or draft is skipped."""

    name = "maildir"

    def detect(self, path: Path) -> bool:
        return path.is_dir() and (_is_maildir(path) or any(_mail_folders(path)) or any(_eml_files(path)))

    def size(self, path: Path) -> int:
        return sum(_size(file.path) for file in _files(path))

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        files = _files(path)
        if options.after and "/" not in options.after:
            raise Refused(f"{options.after!r} is no cursor of a mail folder; read {path} from its start", field="after")
        after = tuple(options.after.rsplit("/", 1))
        done = 0
        for file in files:
            done += _size(file.path)
            if not options.after or (file.folder, file.unique) > after:
                yield Item(self._outcome(path, file, options), file.cursor, done)

    def _outcome(self, root: Path, file: _File, options: ReadOptions) -> SourceEvent | Skipped:
        where = clean_line(_shown(str(file.path.relative_to(root))))
        for flag, reason in (("T", "trashed"), ("D", "draft")):
            if flag in file.flags:
                return Skipped(where, reason, f"the file's name has the flag {flag}")
        try:
            if file.path.is_symlink() or not file.path.is_file():
                return Skipped(where, "no_file", "a symbolic link or no plain file")
            stat = file.path.stat()
            content = file.path.read_bytes() if stat.st_size <= options.max_item_bytes else b""
        except OSError as error:
            # A mail program may move a mail between the listing and the reading.
            return Skipped(where, "unreadable", type(error).__name__)
        arrived_at = datetime.fromtimestamp(stat.st_mtime, UTC)
        container = Container(id=clean_line(file.folder), name=clean_line(file.folder), kind="mailbox")
        if content.startswith(b"From "):
            content = content.partition(b"\n")[2]
        return read_mail(content, stat.st_size, Found(self.name, where, container, arrived_at), options)


def _files(path: Path) -> list[_File]:
    if not path.is_dir():
        raise Refused(f"{path} is no folder; a Maildir or a folder of .eml files was expected", field="path")
    folders = ([(_INBOX, path)] if _is_maildir(path) else []) + [
        (_folder_name(path, folder), folder) for folder in _mail_folders(path)
    ]
    if folders:
        return sorted(file for name, folder in folders for file in _mails(name, folder))
    files = [_File(_shown(str(eml.parent.relative_to(path))), _shown(eml.name), eml, "") for eml in _eml_files(path)]
    if not files:
        raise Refused(f"{path} holds no mail: neither a Maildir's cur and new nor .eml files", field="path")
    return sorted(files)


def _is_maildir(path: Path) -> bool:
    return (path / "cur").is_dir() and (path / "new").is_dir()


def _mail_folders(path: Path) -> Iterator[Path]:
    """Maildirs below a folder, links not followed."""
    for here, names, _ in os.walk(path):
        if Path(here) != path and {"cur", "new"} <= set(names):
            yield Path(here)
        names[:] = sorted(name for name in names if name not in ("cur", "new", "tmp"))


def _eml_files(path: Path) -> Iterator[Path]:
    for here, names, files in os.walk(path):
        names.sort()
        yield from (Path(here) / name for name in sorted(files) if name.lower().endswith(".eml"))


def _folder_name(root: Path, folder: Path) -> str:
    return _shown(str(folder.relative_to(root))).lstrip(".").replace("/.", "/") or _INBOX


def _mails(name: str, folder: Path) -> Iterator[_File]:
    for part in ("cur", "new"):
        for entry in os.scandir(folder / part):
            if not entry.name.startswith("."):
                unique, _, info = entry.name.partition(":2,")
                # Some file systems allow no colon; mailers then write ! or ;
                unique = unique.partition("!2,")[0].partition(";2,")[0]
                yield _File(name, _shown(unique), Path(entry.path), info)


def _shown(name: str) -> str:
    """A file name as text: bytes that are no UTF-8 become escapes."""
    return name.encode("utf-8", "backslashreplace").decode()


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
