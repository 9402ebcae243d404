"""The bytes of one mail → one SourceEvent. Pure: no file, no clock but the one given, and no bytes make it raise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from connectors.base import ReadOptions, Skipped
from connectors.canonical import clean_line, clean_text, cut_text, event_id, sha256_hex
from connectors.mail import bodies, facts, quotes
from connectors.mail.headers import Address, Headers, instant
from topics.records import Actor, Container, SourceEvent

DEFAULT_INSTANCE = "mail"
"""Files of mail name no account: by one name the same mail in two mailboxes is one object."""

MAX_PARTICIPANTS = 200
_REPLY = re.compile(r"^(?:\s*(?:re|aw|sv|vs|antw|odp|rif|res|fwd?|wg|tr)\s?(?:\[\d+\])?\s?:)+\s*", re.IGNORECASE)
# What mail stores write into a mail and change later: no part of its content.
_BOOKKEEPING = re.compile(
    rb"^(?:status|x-status|x-keywords|x-uid|x-uidl|x-mozilla-[a-z0-9-]+|x-gmail-labels|x-gm-thrid|content-length|lines|x-imapbase)[ \t]*:",
    re.I,
)
_FUTURE_DAYS = 2


@dataclass(frozen=True, slots=True)
class Found:
    """Where a mail was found, and what that place says of it."""

    connector: str
    where: str
    container: Container | None = None
    arrived_at: datetime | None = None
    """The mbox's From_ line or the file's time: the last resort for a date."""


def normalize(raw: bytes, found: Found, options: ReadOptions) -> SourceEvent | Skipped:
    """`raw` with \\n line ends and without the mbox's own marks. Skipped: empty, or not a mail (no header and no text)."""
    if not raw.strip():
        return Skipped(found.where, "empty", "nothing but white space")
    message, broken = bodies.parse(raw)
    headers, body = Headers(message), bodies.read_body(message)
    if not len(headers) and b"\0" in raw:
        return Skipped(found.where, "not_a_mail", "no header, and bytes that are no text")
    flags = set(body.flags) | ({"structure_repaired"} if broken or message.defects else set())
    occurred_at, dated = _occurred_at(headers, found, options, flags)
    title = headers.text("subject")
    replied = headers.ids("in-reply-to") or headers.ids("references")[-1:]
    text, text_full, method = _texts(
        title, body, None if facts.is_bounce(headers, body) else bool(replied), flags, options.max_text_bytes
    )
    if not text:
        return Skipped(found.where, "empty", "no text, no subject, no attachment")
    content_hash = _content_hash(raw)
    instance = options.instance_id or DEFAULT_INSTANCE
    object_id = headers.message_id() or f"sha256:{content_hash}"
    version = occurred_at.isoformat() if dated else content_hash[:16]
    sender, participants = _people(headers, options, flags)
    return SourceEvent(
        user_id=options.user_id,
        dataset=options.dataset,
        event_id=event_id(instance, object_id, version, "upsert", content_hash),
        connector=found.connector,
        instance_id=instance,
        object_kind="message",
        object_id=object_id,
        version=version,
        ingest="import",
        occurred_at=occurred_at,
        observed_at=options.clock.now(),
        thread_id=_thread_id(headers, title, object_id),
        parent_id=replied[0] if replied else "",
        container=found.container,
        actor=sender,
        participants=participants,
        title=title,
        text=text,
        text_full=text_full,
        strip_method=method,
        attachments=tuple(body.attachments),
        content_hash=content_hash,
        facts=facts.rule_facts(headers, body, options.self_ids),
        stated_facts=facts.stated_facts(headers, body, occurred_at),
        parse_status="degraded" if flags & {"structure_repaired", "parts_cut", "winmail_dat", "encrypted"} else "ok",
        flags=tuple(sorted(flags)),
    )


def _texts(
    title: str, body: bodies.Body, answers: bool | None, flags: set[str], max_bytes: int
) -> tuple[str, str, str]:
    """(new text, text with quotes or "" if the same, how it was cut). `answers`: it is a reply; None for a bounce, which stays whole."""
    full = clean_text(body.text)
    if not full:
        flags.add("no_text")
        names = ", ".join(file.name for file in body.attachments)
        return cut_text(title or (f"Attachments: {names}" if names else ""), max_bytes)[0], "", ""
    new, method = full, ""
    if answers is None:
        pass
    elif body.unquoted and not quotes.is_forward(title, full):
        new, method = clean_text(body.unquoted), "html_quote"
    elif body.source == "plain" or not body.unquoted:
        new, method = quotes.new_text(title, full, answers=answers)
    text, cut = cut_text(new, max_bytes)
    whole, whole_cut = cut_text(full, max_bytes) if method else ("", False)
    if cut or whole_cut:
        flags.add("truncated")
    return text, whole, method


def _occurred_at(headers: Headers, found: Found, options: ReadOptions, flags: set[str]) -> tuple[datetime, bool]:
    """(the instant, whether it is the Date field's). A Date that lies far after the mail's receipt is as wrong as 33 September."""
    date, zone_known = instant(headers.raw("date"))
    stamps = (instant(line.rpartition(";")[2])[0] for line in headers.all("received")[:1])
    received = next((stamp for stamp in stamps if stamp), None)
    if date is not None and (received is None or (date - received).days <= _FUTURE_DAYS):
        if not zone_known:
            flags.add("tz_unknown")
        return date, True
    flags.add("date_header_invalid" if "date" in headers else "date_header_missing")
    return received or found.arrived_at or options.clock.now(), False


def _people(headers: Headers, options: ReadOptions, flags: set[str]) -> tuple[Actor, tuple[Actor, ...]]:
    sender = next(iter(headers.addresses("from") or headers.addresses("sender")), None)
    automatic = facts.is_automatic(headers, sender)
    actor = _actor(sender, "from", options, automatic) if sender else Actor(kind="ghost", role="from")
    others = [
        _actor(person, role, options) for role in ("to", "cc", "bcc", "reply-to") for person in headers.addresses(role)
    ]
    if len(others) > MAX_PARTICIPANTS:
        flags.add("participants_cut")
    return actor, tuple(others[:MAX_PARTICIPANTS])


def _actor(person: Address, role: str, options: ReadOptions, automatic: bool = False) -> Actor:
    return Actor(
        id=person.address,
        name=person.name,
        address=person.address,
        kind="bot" if automatic else "person",
        is_self=person.address.lower() in options.self_ids,
        role=role,
    )


def _thread_id(headers: Headers, title: str, object_id: str) -> str:
    """The first mail of the conversation: References, else In-Reply-To, else an answer's subject, else the mail itself."""
    known = headers.ids("references") or headers.ids("in-reply-to")
    if known:
        return clean_line(known[0])
    subject = _REPLY.sub("", title)
    return f"subject:{subject.casefold()}" if subject and subject != title else object_id


def _content_hash(raw: bytes) -> str:
    """SHA-256 of the mail without what mail stores note in it, so that reading or moving a mail makes no new version."""
    head, blank, rest = raw.partition(b"\n\n")
    kept: list[bytes] = []
    dropping = False
    for line in head.split(b"\n"):
        dropping = dropping if line[:1] in (b" ", b"\t") else bool(_BOOKKEEPING.match(line))
        if not dropping:
            kept.append(line)
    return sha256_hex((b"\n".join(kept) + blank + rest).rstrip(b"\n"))
