"""Slack's markup as plain sentences. People appear by name without @, so that a reader of sentences finds a subject there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from connectors.canonical import clean_line, clean_text
from connectors.slack.directory import Directory
from connectors.slack.payloads import Json, Message, instant_of

MAX_DEPTH = 20
_MARK = re.compile(r"<([^<>\n]{1,4000})>")
_ENTITY = re.compile(r"&(amp|lt|gt);")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">"}
_MENTION = re.compile(r"<@([A-Z0-9]{2,20})(?:\|[^<>]*)?>")


def text_of(message: Message, names: Directory) -> str:
    """The text, else the blocks, else the attachments, else the names of the files; "" if there is nothing at all."""
    comment = message.comment.get("comment")
    for text in (
        render(message.text, names),
        render(comment, names) if isinstance(comment, str) else "",
        _blocks(message.blocks, names),
        _attachments(message.own_attachments or message.attachments, names),
    ):
        if text.strip():
            return text.strip()
    files = ", ".join(name for name in map(file_name, message.all_files) if name)
    return f"Files: {files}" if files else ""


def mentioned(message: Message) -> tuple[str, ...]:
    """Ids of the people that the text or, without a text, the blocks name; in order, once each."""
    if message.text.strip():
        return tuple(dict.fromkeys(_MENTION.findall(message.text)))
    found = (each.get("user_id") for each in _elements(message.blocks) if each.get("type") == "user")
    return tuple(dict.fromkeys(each for each in found if isinstance(each, str)))


def render(text: str, names: Directory) -> str:
    """mrkdwn → text: marks resolved first, entities last, so that a written `&lt;@U1&gt;` stays what its author typed."""
    rendered = _MARK.sub(lambda match: _mark(match[1], names), text)
    return clean_text(_ENTITY.sub(lambda match: _ENTITIES[match[1]], rendered))


def file_name(file: Json) -> str:
    if file.get("mode") in ("tombstone", "hidden_by_limit"):
        return "a file that is gone"
    return next(
        (clean_line(each, 255) for each in (file.get("name"), file.get("title")) if isinstance(each, str) and each), ""
    )


def _mark(inside: str, names: Directory) -> str:
    target, _, label = inside.partition("|")
    if target.startswith("@"):
        return names.person_name(target[1:], label)
    if target.startswith("#"):
        return f"#{names.channel_name(target[1:], label)}"
    if target.startswith("!"):
        return _command(target[1:], label, names)
    address = re.sub(r"^(?:mailto|tel):", "", target)
    return address if not label or label in (target, address) else f"{label} ({address})"


def _command(command: str, label: str, names: Directory) -> str:
    name, *rest = command.split("^")
    if name == "subteam" and rest:
        return f"@{names.group_name(rest[0], label)}"
    if name == "date" and rest:
        at = instant_of(rest[0])
        return label or (_shown(at) if at else "")
    return label if label and name not in ("here", "channel", "everyone") else f"@{name}"


def _shown(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _blocks(blocks: list[Json], names: Directory, depth: int = 0) -> str:
    lines = (_block(block, names, depth) for block in blocks)
    return "\n".join(line for line in lines if line.strip())


def _block(block: Json, names: Directory, depth: int) -> str:
    kind = block.get("type")
    if depth > MAX_DEPTH:
        return ""
    if kind == "rich_text":
        return "\n".join(_rich(element, names, depth + 1) for element in _objects(block.get("elements")))
    if kind == "context":
        return " ".join(_label(element, names) for element in _objects(block.get("elements")))
    parts = [_label(block, names), *(_label(field, names) for field in _objects(block.get("fields")))]
    title = block.get("title")
    parts.append(_label(title, names) if isinstance(title, dict) else "")
    return "\n".join(part for part in parts if part)


def _label(value: Json, names: Directory) -> str:
    """The text of a text object or of what holds one; an image's alternative text."""
    text = value.get("text")
    if isinstance(text, dict):
        text = text.get("text")
    if isinstance(text, str):
        return render(text, names)
    alternative = value.get("alt_text")
    return clean_line(alternative) if isinstance(alternative, str) else ""


def _rich(element: Json, names: Directory, depth: int) -> str:
    if depth > MAX_DEPTH:
        return ""
    kind, inner = element.get("type"), _objects(element.get("elements"))
    if kind == "rich_text_list":
        return "\n".join(f"- {_rich(each, names, depth + 1)}" for each in inner)
    if inner:
        return "".join(_rich(each, names, depth + 1) for each in inner)
    return _rich_leaf(element, names)


def _rich_leaf(element: Json, names: Directory) -> str:
    def word(name: str) -> str:
        value = element.get(name)
        return clean_text(value) if isinstance(value, str) else ""

    match element.get("type"):
        case "user":
            return names.person_name(word("user_id"))
        case "channel":
            return f"#{names.channel_name(word('channel_id'))}"
        case "usergroup":
            return f"@{names.group_name(word('usergroup_id'))}"
        case "broadcast":
            return f"@{word('range')}"
        case "link":
            text, url = word("text"), word("url")
            return f"{text} ({url})" if text and text != url else url
        case "emoji":
            return f":{word('name')}:"
        case "date":
            at = instant_of(str(element.get("timestamp", "")))
            return word("fallback") or (_shown(at) if at else "")
        case _:
            return word("text")


def _attachments(attachments: list[Json], names: Directory) -> str:
    texts = (_attachment(each, names) for each in attachments[:50])
    return "\n\n".join(text for text in texts if text)


def _attachment(attachment: Json, names: Directory) -> str:
    """What it shows: pretext, title, text, fields, blocks; only without them its fallback, which repeats them."""
    lines = [
        render(value, names) for value in map(attachment.get, ("pretext", "title", "text")) if isinstance(value, str)
    ]
    for field in _objects(attachment.get("fields")):
        title, value = field.get("title"), field.get("value")
        shown = [render(each, names) for each in (title, value) if isinstance(each, str) and each]
        lines.append(": ".join(shown))
    lines.append(_blocks(_objects(attachment.get("blocks")), names, 1))
    for part in _objects(attachment.get("message_blocks")):
        message = part.get("message")
        lines.append(_blocks(_objects(message.get("blocks")), names, 1) if isinstance(message, dict) else "")
    text = "\n".join(line for line in lines if line.strip())
    fallback = attachment.get("fallback")
    return text or (render(fallback, names) if isinstance(fallback, str) else "")


def _elements(blocks: list[Json], depth: int = 0) -> Iterator[Json]:
    if depth <= MAX_DEPTH:
        for block in blocks:
            yield block
            yield from _elements(_objects(block.get("elements")), depth + 1)


def _objects(value: object) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []
