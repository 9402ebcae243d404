"""One Slack message or message event → one SourceEvent, or the reason why there is none. Pure.

Identity is (team, channel, ts) for a message, its edits and its deletion. The version is `edited.ts`, else `ts`; of a deletion, the time of
the deletion. Versions are decimals in strings: a float cannot hold them. `occurred_at` is when the message was written, also for an edit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import ValidationError

from connectors.base import ReadOptions, Skipped
from connectors.canonical import clean_line, cut_text, event_id, sha256_hex
from connectors.slack import facts
from connectors.slack.directory import TYPES, Conversation, Directory
from connectors.slack.payloads import Json, Message, instant_of, valid_ts
from connectors.slack.text import file_name, text_of
from topics.records import Actor, Attachment, Container, SourceEvent

MAX_FILES = 100
MAX_FILE_TEXT_CHARS = 20_000

BOOKKEEPING = frozenset(
    f"{place}_{what}"
    for place in ("channel", "group")
    for what in (
        "join",
        "leave",
        "topic",
        "purpose",
        "name",
        "archive",
        "unarchive",
        "posting_permissions",
        "convert_to_private",
        "canvas_updated",
    )
) | {
    "message_replied",
    "pinned_item",
    "unpinned_item",
    "bot_add",
    "bot_remove",
    "bot_enable",
    "bot_disable",
    "reminder_add",
    "reminder_delete",
    "ekm_access_denied",
    "sh_room_created",
    "sh_room_shared",
    "huddle_thread",
    "joiner_notification",
    "joiner_notification_for_inviter",
    "assistant_app_thread",
    "app_conversation_join",
    "app_conversation_leave",
    "channel_convert_to_public",
}
"""Subtypes that say something about a conversation's housekeeping, never something to remember."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a payload was found, and what that place says of it."""

    connector: str
    where: str
    team: str
    names: Directory
    conversation: Conversation | None = None
    """Of an export's folder; None lets the payload's `channel` tell."""
    delivery_id: str = ""


def normalize(payload: Json, place: Place, options: ReadOptions) -> SourceEvent | Skipped:
    """`payload` is a message of an export or the inner event of a delivery, its type `message`."""
    try:
        message = Message.model_validate(payload)
        if message.subtype == "message_changed":
            return _changed(message, place, options)
    except ValidationError as error:
        fields = ", ".join(sorted({".".join(map(str, each["loc"])) for each in error.errors()}))
        return Skipped(place.where, "malformed", f"no message that Slack would send: see {clean_line(fields, 100)}")
    if message.subtype == "message_deleted":
        return _deleted(message, message.deleted_ts or str(message.previous_message.get("ts", "")), place, options)
    if message.subtype == "tombstone":
        return _deleted(message, message.ts, place, options)
    return _written(message, place, options, version=message.edited_ts or message.ts)


def _changed(event: Message, place: Place, options: ReadOptions) -> SourceEvent | Skipped:
    """An edit only if the content differs: Slack sends the same event when a preview is added, a reply is counted, a parent is deleted."""
    message = Message.model_validate(event.message | {"channel": event.channel, "channel_type": event.channel_type})
    if message.subtype == "tombstone":
        return _deleted(event, message.ts, place, options)
    edited = message.edited_ts
    if event.previous_message:
        previous = Message.model_validate({"ts": message.ts} | event.previous_message)
        if previous.content() == message.content():
            return Skipped(place.where, "unchanged", "the event brings no new text, block or file")
        edited = edited if edited != previous.edited_ts else ""
    return _written(message, place, options, version=edited or event.happened_ts)


def _written(message: Message, place: Place, options: ReadOptions, version: str) -> SourceEvent | Skipped:
    if message.subtype in BOOKKEEPING:
        return Skipped(place.where, "bookkeeping", message.subtype)
    text = text_of(message, place.names)
    if not text:
        return Skipped(place.where, "empty", "no text, no block, no attachment, no file")
    return _event(message, message.ts, version, "upsert", text, message.content(), place, options)


def _deleted(event: Message, ts: str, place: Place, options: ReadOptions) -> SourceEvent | Skipped:
    if not valid_ts(ts):
        return Skipped(place.where, "malformed", "a deletion that does not say of what")
    raw = {"ts": ts, "channel": event.channel, "channel_type": event.channel_type}
    gone = Message.model_validate(event.previous_message | raw)
    return _event(gone, ts, event.happened_ts, "delete", "", f"deleted {ts}".encode(), place, options)


def _event(
    message: Message,
    ts: str,
    version: str,
    change: Literal["upsert", "delete"],
    text: str,
    content: bytes,
    place: Place,
    options: ReadOptions,
) -> SourceEvent | Skipped:
    conversation = place.conversation or _conversation(message, place.names)
    channel = conversation.container.id
    # A deletion happens at its own time; an edit corrects what was said at the message's.
    occurred_at = instant_of(version if change == "delete" else ts)
    if occurred_at is None or not channel:
        return Skipped(place.where, "malformed", "no channel" if occurred_at else f"no time that can be: {ts[:30]}")
    actor = _author(message, place.names, options)
    text, cut = cut_text(text, options.max_text_bytes)
    object_id, content_hash = f"{place.team}/{channel}/{ts}", sha256_hex(content)
    thread = valid_ts(message.thread_ts)
    instance = options.instance_id or place.team
    deleted = change == "delete"
    return SourceEvent(
        user_id=options.user_id,
        dataset=options.dataset,
        event_id=event_id(instance, object_id, version, change, content_hash),
        connector=place.connector,
        instance_id=instance,
        object_kind="thread_reply" if thread and thread != ts else "message",
        object_id=object_id,
        version=version,
        change=change,
        ingest="import",
        delivery_id=place.delivery_id,
        occurred_at=occurred_at,
        observed_at=options.clock.now(),
        thread_id=f"{place.team}/{channel}/{thread}" if thread else "",
        parent_id=f"{place.team}/{channel}/{thread}" if thread and thread != ts else "",
        container=conversation.container,
        actor=actor,
        text=text,
        attachments=() if deleted else tuple(_file(each) for each in message.all_files[:MAX_FILES]),
        content_hash=content_hash,
        facts=facts.rule_facts(message, actor, conversation, options.self_ids),
        stated_facts=() if deleted else facts.stated_facts(message, actor, conversation, place.names, occurred_at),
        flags=("truncated",) if cut else (),
    )


def _conversation(message: Message, names: Directory) -> Conversation:
    """By the payload's channel id; unknown ones have no name, and a kind only if the event tells it."""
    channel = clean_line(message.channel, 100)
    known = names.conversations.get(channel)
    if known or not channel:
        return known or Conversation(Container(id=""))
    kind = TYPES.get(message.channel_type, "dm" if channel.startswith("D") else "")
    return Conversation(Container(id=channel, kind=kind, private=kind not in ("", "channel"), is_dm=kind == "dm"))


def _author(message: Message, names: Directory, options: ReadOptions) -> Actor:
    """A person, a bot (also one without a user), or a ghost if the message names nobody."""
    comment_user = message.comment.get("user")
    key = clean_line(message.user or (comment_user if isinstance(comment_user, str) else ""), 100)
    person = names.people.get(key)
    is_bot = (
        bool(message.bot_id) or message.subtype == "bot_message" or bool(person and person.is_bot) or key == "USLACKBOT"
    )
    claimed = (
        message.username,
        message.bot_profile.get("name"),
        message.user_profile.get("real_name"),
        message.user_profile.get("name"),
    )
    fallback = next((each for each in claimed if isinstance(each, str) and each.strip()), "")
    name = person.name if person and person.name else clean_line(fallback, 200)
    identity = key or clean_line(message.bot_id, 100)
    return Actor(
        id=identity,
        name=name,
        address=person.address if person else "",
        kind="bot" if is_bot else "person" if identity or name else "ghost",
        is_self=bool(options.self_ids.intersection({key, message.bot_id} - {""})),
        role="author",
    )


def _file(file: Json) -> Attachment:
    size, preview, mime, key = file.get("size"), file.get("preview"), file.get("mimetype"), file.get("id")
    return Attachment(
        id=clean_line(key, 100) if isinstance(key, str) else "",
        name=file_name(file),
        mime=clean_line(mime, 120) if isinstance(mime, str) else "",
        size_bytes=size if isinstance(size, int) and size >= 0 else 0,
        text=preview[:MAX_FILE_TEXT_CHARS] if isinstance(preview, str) else "",
    )
