"""The files of an export, in a folder or in a zip, behind one small interface. A zip is read in place: nothing of it is written to disk,
so no name in it can lead anywhere, and what it may unpack to is bounded before and while it is read."""

from __future__ import annotations

import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Protocol

from connectors.base import Skipped
from connectors.canonical import clean_line
from topics.errors import Refused

MAX_MEMBERS = 500_000
MAX_FILE_BYTES = 64 * 1024 * 1024
"""One day of one channel: a day of 20,000 messages is about 30 MB."""
MAX_TOTAL_BYTES = 16 * 1024**3
MAX_RATIO = 200
"""How much smaller than its content a zipped file may be; chat in JSON packs to a tenth, a bomb to a thousandth."""
_RATIO_FROM_BYTES = 4 * 1024 * 1024

_BROKEN = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    RuntimeError,
    NotImplementedError,
    ValueError,
)


class Unreadable(Exception):
    """A file of the archive cannot be read; the message says why."""


class Tree(Protocol):
    """JSON files by their path with `/`, and what was left out while listing them."""

    sizes: dict[str, int]
    left_out: list[Skipped]

    def read(self, name: str) -> bytes:
        """Raises Unreadable."""
        ...


@contextmanager
def open_tree(path: Path) -> Iterator[Tree]:
    """Raises Refused if the path is neither a folder nor a zip, or the zip is a bomb."""
    if path.is_dir():
        yield FolderTree(path)
        return
    if not path.is_file() or not zipfile.is_zipfile(path):
        raise Refused(f"{path} is neither a folder nor a zip; a Slack export was expected", field="path")
    try:
        archive = zipfile.ZipFile(path)
    except _BROKEN as error:
        raise Refused(
            f"{path} cannot be opened as a zip ({type(error).__name__}); download the export again", field="path"
        ) from error
    with archive:
        yield ZipTree(path, archive)


class FolderTree:
    """A folder; symbolic links are left out, because they may lead out of it."""

    def __init__(self, root: Path) -> None:
        self.sizes: dict[str, int] = {}
        self.left_out: list[Skipped] = []
        self._root = root
        for here, folders, files in os.walk(root):
            folders.sort()
            for each in sorted(files):
                path = Path(here) / each
                name = path.relative_to(root).as_posix()
                if not name.endswith(".json"):
                    continue
                if path.is_symlink() or not path.is_file():
                    self.left_out.append(Skipped(clean_line(name), "no_file", "a symbolic link or no plain file"))
                else:
                    self.sizes[name] = path.stat().st_size

    def read(self, name: str) -> bytes:
        if self.sizes[name] > MAX_FILE_BYTES:
            raise Unreadable(f"{self.sizes[name]} bytes; at most {MAX_FILE_BYTES} are read")
        try:
            return (self._root / name).read_bytes()
        except OSError as error:
            raise Unreadable(type(error).__name__) from error


class ZipTree:
    """A zip; only names of JSON files that stay inside are listed."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.sizes: dict[str, int] = {}
        self.left_out: list[Skipped] = []
        self._archive = archive
        members = archive.infolist()
        if len(members) > MAX_MEMBERS:
            raise Refused(f"{path} holds {len(members)} files; an export has at most {MAX_MEMBERS}", field="path")
        for member in members:
            if member.is_dir() or not member.filename.endswith(".json"):
                continue
            if not _is_inside(member.filename):
                self.left_out.append(
                    Skipped(clean_line(member.filename, 200), "unsafe_path", "the name leads out of the archive")
                )
                continue
            if member.file_size > max(_RATIO_FROM_BYTES, MAX_RATIO * member.compress_size):
                raise Refused(
                    f"{path} is no export but a bomb: {clean_line(member.filename, 100)} unpacks to {member.file_size} bytes",
                    field="path",
                )
            self.sizes[member.filename] = member.file_size
        if sum(self.sizes.values()) > MAX_TOTAL_BYTES:
            raise Refused(f"{path} unpacks to more than {MAX_TOTAL_BYTES} bytes; import it in parts", field="path")

    def read(self, name: str) -> bytes:
        if self.sizes[name] > MAX_FILE_BYTES:
            raise Unreadable(f"{self.sizes[name]} bytes; at most {MAX_FILE_BYTES} are read")
        try:
            with self._archive.open(name) as file:
                # The size in the directory is a claim.
                data = file.read(self.sizes[name] + 1)
        except _BROKEN as error:
            raise Unreadable(f"{type(error).__name__}: broken, encrypted or packed in an unknown way") from error
        if len(data) > self.sizes[name]:
            raise Unreadable("it unpacks to more than it claims")
        return data


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name and ":" not in path.parts[0]
