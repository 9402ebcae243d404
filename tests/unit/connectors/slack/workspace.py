"""A small workspace to read, and ways to write it down as a folder, a zip and events."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from connectors.base import ReadOptions, Skipped
from connectors.slack.directory import Directory
from connectors.slack.normalize import Place, normalize
from tests.unit.connectors.reading import OPTIONS
from topics.records import SourceEvent

USERS: list[dict[str, Any]] = [
    {"id": "U1", "team_id": "T1", "name": "ann", "profile": {"real_name": "Ann Lee", "email": "ann@example.com"}},
    {"id": "U2", "team_id": "T1", "name": "bob", "real_name": "Bob Stone"},
    {"id": "UB", "team_id": "T1", "name": "buildy", "is_bot": True, "profile": {"display_name": "Buildy"}},
]
CHANNELS: list[dict[str, Any]] = [{"id": "C1", "name": "general", "members": ["U1", "U2"]}]


def names() -> Directory:
    found = Directory()
    for user in USERS:
        found.learn_person(user)
    found.learn_conversation(CHANNELS[0], "channel")
    return found


def message(text: str = "Hello.", **fields: Any) -> dict[str, Any]:
    return {"type": "message", "user": "U1", "text": text, "ts": "1772445600.000100", "channel": "C1"} | fields


def outcome(payload: dict[str, Any], options: ReadOptions = OPTIONS) -> SourceEvent | Skipped:
    return normalize(payload, Place("slack_events", "here", "T1", names()), options)


def event(payload: dict[str, Any], options: ReadOptions = OPTIONS) -> SourceEvent:
    """The event of a payload; fails if it is skipped."""
    found = outcome(payload, options)
    assert isinstance(found, SourceEvent), found
    return found


def reason(payload: dict[str, Any]) -> str:
    """Why a payload is skipped; fails if it is not."""
    found = outcome(payload)
    assert isinstance(found, Skipped), found
    return found.reason


FILES: dict[str, Any] = {
    "users.json": USERS,
    "channels.json": CHANNELS,
    "groups.json": [{"id": "G1", "name": "board", "members": ["U1"]}],
    "dms.json": [{"id": "D1", "members": ["U1", "U2"]}],
    "mpims.json": [{"id": "M1", "name": "mpdm-ann--bob--buildy-1", "members": ["U1", "U2", "UB"]}],
    "integration_logs.json": [],
    "general/2026-03-02.json": [
        message(ts="1772445600.000100"),
        message("Two.", ts="1772445601.000200"),
        {"ts": "x"},
        7,
    ],
    "general/2026-03-03.json": [message("Three.", ts="1772532000.000100")],
    "board/2026-03-02.json": [message("Secret.", ts="1772445602.000000")],
    "D1/2026-03-02.json": [message("Psst.", ts="1772445603.000000")],
    "mpdm-ann--bob--buildy-1/2026-03-02.json": [message("We three.", ts="1772445604.000000")],
    "general/canvas.json": {"no": "messages"},
}


def as_folder(root: Path, files: dict[str, Any] = FILES) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return root


def as_zip(path: Path, files: dict[str, Any] = FILES, top: str = "") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(top + name, content if isinstance(content, bytes) else json.dumps(content))
    return path
