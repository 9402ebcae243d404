"""Slack events as JSON lines: deliveries of the Events API (`event_callback`), of Socket Mode, or the bare inner events.

Events of other types teach names (people, channels) and are skipped as messages. Cursor: the line's number and a hash of its bytes; going on
reads the lines before it again, for the names in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from connectors.base import Item, ReadOptions, Skipped
from connectors.canonical import clean_line, sha256_hex
from connectors.slack.directory import Directory
from connectors.slack.export import UNKNOWN_TEAM, message_outcome
from connectors.slack.normalize import Place
from connectors.slack.payloads import Json, read_json
from topics.errors import Refused
from topics.records import SourceEvent

MAX_LINE_BYTES = 4 * 1024 * 1024
_HEAD_BYTES = 256 * 1024


class SlackEventsSource:
    """See the module."""

    name = "slack_events"

    def detect(self, path: Path) -> bool:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            first = next((line for line in file.read(_HEAD_BYTES).splitlines() if line.strip()), b"")
        try:
            value = read_json(first)
        except ValueError:
            return False
        return isinstance(value, dict) and isinstance(value.get("type"), str)

    def size(self, path: Path) -> int:
        return _checked(path).stat().st_size

    def read(self, path: Path, options: ReadOptions) -> Iterator[Item]:
        if not self.detect(_checked(path)) and path.stat().st_size:
            raise Refused(
                f"{path} holds no Slack events: a JSON object with a `type` was expected in its first line",
                field="path",
            )
        names = Directory()
        reached = not options.after
        with path.open("rb") as file:
            for number, (line, size, end) in enumerate(_lines(file), start=1):
                outcome = self._outcome(line, size, f"{path.name}, line {number}", names, options)
                cursor = f"{number}-{sha256_hex(line)[:16]}"
                if reached and (line.strip() or size > MAX_LINE_BYTES):
                    yield Item(outcome, cursor, end)
                reached = reached or cursor == options.after
        if not reached:
            raise Refused(
                f"{path} was changed since the import stopped; read it from its start (known events add nothing)",
                field="after",
            )

    def _outcome(
        self, line: bytes, size: int, where: str, names: Directory, options: ReadOptions
    ) -> SourceEvent | Skipped:
        if size > MAX_LINE_BYTES:
            return Skipped(where, "oversized", f"{size} bytes; at most {MAX_LINE_BYTES} are read")
        try:
            delivery = read_json(line)
        except ValueError:
            return Skipped(where, "malformed", "the line is no JSON; perhaps it is cut")
        if not isinstance(delivery, dict):
            return Skipped(where, "malformed", "no JSON object")
        event, outer = _inner(delivery)
        kind = event.get("type")
        if kind != "message":
            _learn(names, event)
            return Skipped(where, "not_a_message", clean_line(kind, 60) if isinstance(kind, str) else "")
        team = _first_text(outer.get("team_id"), event.get("team"), options.instance_id) or UNKNOWN_TEAM
        place = Place(self.name, where, team, names, delivery_id=_first_text(outer.get("event_id")))
        return message_outcome(event, place, options)


def _inner(delivery: Json) -> tuple[Json, Json]:
    """(the event, the envelope around it: {} for a bare event)."""
    payload = delivery.get("payload")
    if isinstance(payload, dict):
        delivery = payload
    event = delivery.get("event")
    return (event, delivery) if isinstance(event, dict) else (delivery, {})


def _learn(names: Directory, event: Json) -> None:
    """Names that stand in events: the newest counts for the messages behind it."""
    user, channel, group = event.get("user"), event.get("channel"), event.get("subteam")
    if event.get("type") in ("user_change", "team_join", "user_profile_changed") and isinstance(user, dict):
        names.learn_person(user)
    elif event.get("type") in ("channel_created", "channel_rename", "group_rename") and isinstance(channel, dict):
        names.learn_conversation(channel, "private_channel" if event["type"] == "group_rename" else "channel")
    elif event.get("type") in ("subteam_created", "subteam_updated") and isinstance(group, dict):
        names.learn_group(group)


def _lines(file: BinaryIO) -> Iterator[tuple[bytes, int, int]]:
    """(line, its size, the offset behind it); of an oversized line only the first bytes."""
    end = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        size = len(line)
        piece = line
        while not piece.endswith(b"\n") and (piece := file.readline(MAX_LINE_BYTES)):
            size += len(piece)
        end += size
        yield line, size, end


def _first_text(*values: object) -> str:
    return next((clean_line(value, 100) for value in values if isinstance(value, str) and value), "")


def _checked(path: Path) -> Path:
    if not path.is_file():
        raise Refused(f"{path} is no file; JSON lines of Slack events were expected", field="path")
    return path
