"""RememberBody: what a caller may ask to remember, with the rules of every field, and the record it becomes.

The rules are those of features.md items 1–13 and 379–383. Unknown fields are ignored (item 6), so that an older server takes a newer client's body.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, TypeVar
from uuid import uuid4

from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from topics import ids, rules
from topics.clock import Clock
from topics.errors import Refused, TooLarge
from topics.keys import DatasetKey
from topics.records import RememberRequest

MAX_TITLE_BYTES: Final = 1024
MAX_TAGS: Final = 64
RESERVED_KINDS: Final = frozenset({"web_search", "series_observation", "chunk_summary"})
"""Kinds that only the pipeline writes (features.md item 11)."""

KEY_PATTERN: Final = r"^[A-Za-z0-9._:\-]{1,256}$"
"""features.md item 379."""

_RFC3339 = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")

M = TypeVar("M", bound=BaseModel)


def _title(value: str) -> str:
    return rules.without_controls(value, MAX_TITLE_BYTES)


def _author(value: str) -> str:
    return rules.without_controls(value, rules.MAX_NAME_BYTES)


def _kind(value: object) -> object:
    if not isinstance(value, str):
        return value
    lower = value.lower()
    if lower in RESERVED_KINDS:
        raise ValueError(f"{lower} is made by the pipeline only; send knowledge or episode")
    return lower


def _rfc3339(value: object) -> object:
    if not (isinstance(value, datetime) or (isinstance(value, str) and _RFC3339.fullmatch(value))):
        raise ValueError("must be an RFC 3339 time with a zone, like 2025-03-01T09:30:00Z or 2025-03-01T10:30:00+01:00")
    return value


def _utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("must lie within the years 1 to 9999 in UTC") from None


Name = Annotated[str, AfterValidator(rules.name), Field(min_length=1, max_length=rules.MAX_NAME_BYTES)]
"""1 to 128 bytes of UTF-8, not blank, without control characters."""

Rfc3339 = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_rfc3339), AfterValidator(_utc)]
"""An RFC 3339 time with its zone; UTC once read."""


class Body(BaseModel):
    """A caller's input: types are strict ("1" is no number), unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore", regex_engine="rust-regex")


class RememberBody(Body):
    """One text to remember."""

    user_id: Name = Field(description="Whose memory: 1 to 128 bytes without control characters.")
    text: Annotated[str, AfterValidator(rules.text)] = Field(
        min_length=1,
        description=f"What to remember: not blank, at most {rules.MAX_TEXT_BYTES:,} bytes of UTF-8, no NUL character.",
    )
    dataset: Name = Field("main", description="Which of the user's datasets; made by its first text.")
    title: Annotated[str, AfterValidator(_title)] = Field(
        "", description=f"At most {MAX_TITLE_BYTES:,} bytes, one line."
    )
    kind: Annotated[Literal["knowledge", "episode"], BeforeValidator(_kind)] = Field(
        "knowledge", description="knowledge or episode, in any letter case. Stored and shown; it changes nothing else."
    )
    reference_time: Rfc3339 | None = Field(
        None,
        description='What "now" means in the text, RFC 3339 with a zone; absent = the time of acceptance. Relative dates count from it.',
    )
    session_id: Name | None = Field(None, description="A conversation the text belongs to.")
    tags: tuple[Name, ...] = Field((), max_length=MAX_TAGS, strict=False, description=f"At most {MAX_TAGS}.")
    idempotency_key: str | None = Field(
        None,
        pattern=KEY_PATTERN,
        description="1 to 256 of letters, digits, `.` `_` `:` `-`. The same request under the same key is one run, however often it is sent; "
        "another request under it is rejected. Absent: one is made and told in the receipt.",
    )
    author: Annotated[str, AfterValidator(_author)] = Field("", description='Who says "I" in the text.')

    @property
    def key(self) -> DatasetKey:
        return DatasetKey(self.user_id, self.dataset)

    def request_hash(self) -> str:
        """SHA-256, hex, over the canonical JSON (sorted keys, no spaces, UTC times) of what the caller asked for, its key left out.

        A field set to its default is as one not set: they ask for the same.
        """
        asked = self.model_dump(mode="json", exclude_defaults=True, exclude={"idempotency_key"})
        return hashlib.sha256(
            json.dumps(asked, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode()
        ).hexdigest()


class SearchBody(Body):
    """A question to one dataset, at a pair of times."""

    user_id: Name = Field(description="Whose memory.")
    query: Annotated[str, AfterValidator(rules.text)] = Field(
        min_length=1,
        max_length=4096,
        description="Words or a question, at most 4,096 characters; never a query language.",
    )
    dataset: Name = Field("main", description="Which of the user's datasets.")
    limit: int = Field(10, ge=1, le=100, description="At most so many hits.")
    as_of: Rfc3339 | None = Field(None, description="What was true then, RFC 3339 with a zone; absent = now.")
    known_at: Rfc3339 | None = Field(None, description="As believed then, RFC 3339 with a zone; absent = now.")
    cursor: str = Field(
        "",
        max_length=1024,
        description="`next_cursor` of the page before, with the same question; its times are those of the first page.",
    )

    @property
    def key(self) -> DatasetKey:
        return DatasetKey(self.user_id, self.dataset)


def parsed(model: type[M], raw: bytes) -> M:
    """The body read from JSON. Raises BadJson if it is none, Refused with the first broken rule's field otherwise."""
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise refusal(error) from None


class BadJson(Refused):
    """The body is no JSON text: nothing in it was looked at."""

    code = "bad_json"


def refusal(error: ValidationError) -> Refused:
    """Up to five broken rules in one message, without what the caller sent."""
    found = error.errors(include_input=False, include_url=False)
    if found[0]["type"] == "json_invalid":
        return BadJson(f"the body is not JSON that can be read: {found[0]['msg'].removeprefix('Invalid JSON: ')}")
    return Refused("; ".join(map(_sentence, found[:5])), field=_field(found[0]))


def _field(detail: ErrorDetails) -> str:
    return ".".join(str(part) for part in detail["loc"])


def _sentence(detail: ErrorDetails) -> str:
    text = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "value_error":
        return f"{_field(detail)} {text}"
    return f"{_field(detail) or 'the body'}: {text[:1].lower()}{text[1:]}"


def to_request(body: RememberBody, clock: Clock, *, source_type: str = "api") -> RememberRequest:
    """The record of a body, accepted now. Without a key of the caller's one is made, so the same body twice is then two runs.

    Raises TooLarge for a text over 1,048,576 bytes.
    """
    size = len(body.text.encode())
    if size > rules.MAX_TEXT_BYTES:
        raise TooLarge(
            f"text has {size:,} bytes, more than the {rules.MAX_TEXT_BYTES:,} allowed: cut it and send the pieces",
            field="text",
        )
    idempotency_key = body.idempotency_key or str(uuid4())
    request_hash = body.request_hash()
    accepted_at = clock.now()
    return RememberRequest(
        user_id=body.user_id,
        dataset=body.dataset,
        run_id=ids.run_id(body.key, source_type, idempotency_key, request_hash),
        idempotency_key=idempotency_key,
        request_hash=request_hash,
        text=body.text,
        title=body.title,
        kind=body.kind,
        reference_time=body.reference_time or accepted_at,
        accepted_at=accepted_at,
        session_id=body.session_id,
        tags=body.tags,
        source_type=source_type,
        author=body.author,
    )


def validated(model: type[M], fields: dict[str, Any]) -> M:
    """A body from Python values, by the same rules. Raises Refused."""
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        raise refusal(error) from None
