"""What Slack sends, as far as we read it. Unknown fields are kept; a field of the wrong type counts as empty, only an object without `ts` fails.

Vendor pages: https://docs.slack.dev/reference/events/message and https://slack.com/help/articles/220556107 (exports).
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Json = dict[str, Any]

_TS = re.compile(r"\d{1,11}(?:\.\d{1,9})?")
_LAST_YEAR = 2100


def _word(value: object) -> str:
    return (
        value
        if isinstance(value, str)
        else str(value)
        if isinstance(value, int) and not isinstance(value, bool)
        else ""
    )


def _object(value: object) -> object:
    return value if isinstance(value, dict) else {}


def _objects(value: object) -> object:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _truth(value: object) -> object:
    return value is True


Word = Annotated[str, BeforeValidator(_word)]
Object = Annotated[Json, BeforeValidator(_object)]
Objects = Annotated[list[Json], BeforeValidator(_objects)]
Flag = Annotated[bool, BeforeValidator(_truth)]


class Payload(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")


class Message(Payload):
    """A message, as it stands in an export, in an event, and inside `message_changed`. Times are decimals in strings, never floats."""

    ts: Annotated[str, BeforeValidator(_word)] = Field(pattern=rf"^{_TS.pattern}$")
    subtype: Word = ""
    user: Word = ""
    username: Word = ""
    bot_id: Word = ""
    bot_profile: Object = {}
    user_profile: Object = {}
    text: Word = ""
    blocks: Objects = []
    attachments: Objects = []
    files: Objects = []
    file: Object = {}
    comment: Object = {}
    thread_ts: Word = ""
    parent_user_id: Word = ""
    edited: Object = {}
    channel: Word = ""
    channel_type: Word = ""
    team: Word = ""
    event_ts: Word = ""
    deleted_ts: Word = ""
    hidden: Flag = False
    message: Object = {}
    previous_message: Object = {}

    @property
    def edited_ts(self) -> str:
        """ "" for a message that was never edited."""
        return valid_ts(self.edited.get("ts"))

    @property
    def happened_ts(self) -> str:
        """When the event happened, which is not when the message was written."""
        return valid_ts(self.event_ts) or self.ts

    @property
    def all_files(self) -> list[Json]:
        return self.files or ([self.file] if self.file else [])

    @property
    def own_attachments(self) -> list[Json]:
        """Those that belong to the message. A preview of a link is Slack's own addition, and comes and goes."""
        return [each for each in self.attachments if not (each.get("from_url") or each.get("original_url"))]

    def content(self) -> bytes:
        """What makes a new version when it differs: text, blocks, files and own attachments; without ids that Slack draws anew."""
        parts = {
            "user": self.user or self.bot_id,
            "text": self.text,
            "blocks": _without_ids(self.blocks),
            "files": [_word(file.get("id")) for file in self.all_files],
            "attachments": _without_ids(self.own_attachments),
        }
        return json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()


def valid_ts(value: object) -> str:
    """The decimal as Slack wrote it; "" for anything else."""
    word = _word(value)
    return word if _TS.fullmatch(word) else ""


def instant_of(ts: str) -> datetime | None:
    """Slack's decimal seconds as a UTC instant, exact to the microsecond; None if it is none or lies behind the year 2100."""
    if not _TS.fullmatch(ts):
        return None
    seconds, _, fraction = ts.partition(".")
    try:
        at = datetime.fromtimestamp(int(seconds), UTC) + timedelta(microseconds=int(fraction.ljust(6, "0")[:6]))
    except (ValueError, OverflowError, OSError):
        return None
    return at if at.year <= _LAST_YEAR else None


def read_json(raw: bytes) -> Any:
    """Numbers with a point stay strings, so that a `ts` without quotes is exact. Raises ValueError for anything that is no JSON."""
    try:
        return json.loads(raw.decode("utf-8-sig"), parse_float=str)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _without_ids(value: Any, depth: int = 0) -> Any:
    if depth > 40:
        return None
    if isinstance(value, dict):
        return {
            name: _without_ids(each, depth + 1)
            for name, each in value.items()
            if name not in ("block_id", "action_id", "id")
        }
    if isinstance(value, list):
        return [_without_ids(each, depth + 1) for each in value]
    return value
