"""A Slack export: users.json, channels.json (groups, dms, mpims), and a folder a conversation with a file a day.

Order: day, conversation, place in the file, so that a memory hears things about as they happened. Cursor: `folder/day#index`.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connectors.base import Item, ReadOptions, Skipped
from connectors.canonical import clean_line
from connectors.slack.archive import Tree, Unreadable, open_tree
from connectors.slack.directory import KINDS, Conversation, Directory
from connectors.slack.normalize import Place, normalize
from connectors.slack.payloads import Json, read_json
from topics.errors import Refused
from topics.records import Container, SourceEvent

UNKNOWN_TEAM = "slack"
"""The team id when neither users.json nor the options name one."""

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\.json")
_LISTS = ("users", *KINDS)
_CURSOR = re.compile(r"(?P<folder>.+)/(?P<day>\d{4}-\d{2}-\d{2})#(?P<index>\d{1,9})", re.DOTALL)


@dataclass(frozen=True, slots=True, order=True)
class _Step:
    day: str
    folder: str
    index: int

    def __str__(self) -> str:
        return f"{self.folder}/{self.day}#{self.index}"


class SlackExportSource:
    """See the module."""

    name = "slack_export"

    def detect(self, path: Path) -> bool:
        if path.is_dir():
            return any((folder / f"{each}.json").is_file() for folder in (path, *_children(path)) for each in _LISTS)
        if not path.is_file() or not zipfile.is_zipfile(path):
            return False
        try:
            with zipfile.ZipFile(path) as archive:
                return _root(archive.namelist()) is not None
        except (OSError, zipfile.BadZipFile, ValueError, NotImplementedError):
            return False

    def size(self, path: Path) -> int:
        with open_tree(path) as tree:
            return sum(size for _, _, size in _days(tree, _checked_root(tree, path)))

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        after = _step(options.after) if options.after else None
        with open_tree(path) as tree:
            root = _checked_root(tree, path)
            names, problems = _read_names(tree, root)
            if after is None:
                yield from (Item(skipped, "", 0) for skipped in [*tree.left_out, *problems])
            team = options.instance_id or names.team or UNKNOWN_TEAM
            done = 0
            for day, folder, size in _days(tree, root):
                if after is None or (day, folder) >= (after.day, after.folder):
                    conversation = _conversation(folder, names)
                    for step, share, outcome in _read_day(
                        tree, root, (day, folder), (team, names, conversation), options
                    ):
                        if after is None or step > after:
                            yield Item(outcome, str(step), done + int(size * share))
                done += size


def _read_day(
    tree: Tree, root: str, day: tuple[str, str], context: tuple[str, Directory, Conversation], options: ReadOptions
) -> Iterator[tuple[_Step, float, SourceEvent | Skipped]]:
    where = f"{day[1]}/{day[0]}.json"
    team, names, conversation = context
    try:
        messages = read_json(tree.read(root + where))
        if not isinstance(messages, list):
            raise ValueError("no list of messages")
    except (Unreadable, ValueError) as error:
        reason = "unreadable" if isinstance(error, Unreadable) else "malformed"
        yield (
            _Step(*day, 0),
            1.0,
            Skipped(
                clean_line(where),
                reason,
                clean_line(str(error), 120) if reason == "unreadable" else "no JSON list of messages",
            ),
        )
        return
    for index, message in enumerate(messages):
        place = Place(SlackExportSource.name, clean_line(f"{where}#{index}"), team, names, conversation)
        yield _Step(*day, index), (index + 1) / len(messages), message_outcome(message, place, options)


def message_outcome(message: object, place: Place, options: ReadOptions) -> SourceEvent | Skipped:
    """The event of one payload, or why there is none: also when our own code fails on it, because the next one must be read."""
    if not isinstance(message, dict):
        return Skipped(place.where, "malformed", "no JSON object")
    try:
        return normalize(message, place, options)
    except Exception as error:  # noqa: BLE001 - one message never stops an import; the report names it.
        return Skipped(
            place.where, "unreadable", f"{type(error).__name__} while it was read; please report this message"
        )


def _read_names(tree: Tree, root: str) -> tuple[Directory, list[Skipped]]:
    names, problems = Directory(), []
    # People first: a direct message is named after them.
    for each in _LISTS:
        name = f"{root}{each}.json"
        if name not in tree.sizes:
            continue
        try:
            rows: Any = read_json(tree.read(name))
        except (Unreadable, ValueError):
            problems.append(Skipped(name, "unreadable", "no JSON; its ids stay without names"))
            continue
        for row in rows if isinstance(rows, list) else []:
            if isinstance(row, dict):
                _learn(names, each, row)
    return names, problems


def _learn(names: Directory, kind: str, row: Json) -> None:
    if kind == "users":
        names.learn_person(row)
    else:
        names.learn_conversation(row, KINDS[kind])


def _conversation(folder: str, names: Directory) -> Conversation:
    """An export names a channel's folder by the channel's name, a direct message's by its id."""
    found = names.conversations.get(folder) or names.conversations.get(names.folders.get(folder, ""))
    shown = clean_line(folder, 200)
    return found or Conversation(Container(id=shown, name=shown))


def _days(tree: Tree, root: str) -> list[tuple[str, str, int]]:
    """(day, folder, bytes), sorted; other files of an export hold no messages."""
    found = []
    for name, size in tree.sizes.items():
        folder, slash, file = name.removeprefix(root).rpartition("/")
        if name.startswith(root) and slash and "/" not in folder and _DAY.fullmatch(file):
            found.append((file.removesuffix(".json"), folder, size))
    return sorted(found)


def _root(names: list[str]) -> str | None:
    """The folder of users.json or channels.json with its `/`, "" for the top, the highest if several; None if there is none."""
    lists = {f"{each}.json" for each in _LISTS}
    roots = [name.removesuffix(name.rpartition("/")[2]) for name in names if name.rpartition("/")[2] in lists]
    return min(roots, key=lambda root: (root.count("/"), root), default=None)


def _checked_root(tree: Tree, path: Path) -> str:
    root = _root(list(tree.sizes))
    if root is None:
        raise Refused(f"{path} is no Slack export: users.json or channels.json was expected in it", field="path")
    return root


def _children(path: Path) -> list[Path]:
    return sorted(each for each in path.iterdir() if each.is_dir())[:50]


def _step(cursor: str) -> _Step:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise Refused(f"{cursor!r} is no cursor of a Slack export; read it from its start", field="after")
    return _Step(match["day"], match["folder"], int(match["index"]))
