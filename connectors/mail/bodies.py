"""The parts of a MIME mail: its text, and what is attached. Tolerant: a broken part costs itself, never the mail."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message

from connectors.canonical import clean_line, cut_text
from connectors.mail.calendar import read_invitation
from connectors.mail.charsets import decode
from connectors.mail.headers import UNRULY, Headers, decode_words, lenient_base64
from connectors.mail.html import html_to_text
from topics.records import Attachment

MAX_DEPTH = 40
MAX_PARTS = 2_000
MAX_ATTACHMENTS = 100
MAX_ATTACHED_TEXT_BYTES = 64 * 1024
"""What of the text of all attachments of a mail travels in its event."""

_TNEF = ("application/ms-tnef", "application/vnd.ms-tnef")
_SEALED = ("application/pkcs7-mime", "application/x-pkcs7-mime", "application/pgp-encrypted")
_BOUNDARY = re.compile(rb"^--([A-Za-z0-9'()+_,./:=?-]{1,70})[ \t]*$", re.MULTILINE)
_HEADER_LINE = re.compile(rb"^(?:[!-9;-~]+[ \t]*:|From |>From )")


@dataclass(slots=True)
class Body:
    """What a mail holds."""

    text: str = ""
    """With quotes; "" if no part is text."""
    unquoted: str = ""
    """Without what the HTML marks as quoted; "" if it marks nothing."""
    source: str = ""
    """Where the text came from: plain, html, calendar, or "" if there is none."""
    has_calendar: bool = False
    is_report: bool = False
    """It holds a delivery status (RFC 3464): a bounce."""
    attachments: list[Attachment] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Piece:
    kind: str
    text: str
    unquoted: str = ""


def parse(raw: bytes) -> tuple[Message, bool]:
    """The mail as a tree of parts, and whether it had to be taken as headers and one text because its structure cannot be read."""
    try:
        return message_from_bytes(raw), False
    except Exception:  # noqa: BLE001 - the library promises no list of errors; the bytes are read in the plainest way instead.
        head, _, text = raw.partition(b"\n\n")
        kept = [line for line in head.split(b"\n") if not line.lower().startswith((b"content-", b"mime-"))]
        message = Message()
        for line in kept:
            name, colon, value = line.partition(b":")
            if colon and _HEADER_LINE.match(line):
                message[name.decode("ascii", "replace")] = value.strip().decode("ascii", "surrogateescape")
        message.set_payload(text.decode("ascii", "surrogateescape"))
        return message, True


def read_body(message: Message) -> Body:
    """Plain text first, else HTML, else an invitation; forwarded mails are part of the text. Never raises."""
    body = Body()
    reader = _Reader(body)
    pieces = reader.pieces(message, 0)
    body.source = pieces[0].kind if pieces else ""
    body.text = "\n\n".join(piece.text for piece in pieces).strip()
    if any(piece.unquoted for piece in pieces):
        body.unquoted = "\n\n".join(piece.unquoted or piece.text for piece in pieces).strip()
    if len(body.attachments) > MAX_ATTACHMENTS:
        del body.attachments[MAX_ATTACHMENTS:]
        body.flags.add("attachments_cut")
    return body


class _Reader:
    """One walk over one mail."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.parts = 0
        self.attached_bytes = 0

    def pieces(self, part: Message, depth: int) -> list[_Piece]:
        self.parts += 1
        if self.parts > MAX_PARTS or depth > MAX_DEPTH:
            self.body.flags.add("parts_cut")
            return []
        kind = part.get_content_type()
        if kind in _SEALED or kind == "multipart/encrypted":
            self.body.flags.add("encrypted")
        if part.is_multipart():
            if kind.startswith("message/"):
                return self._embedded(part, kind, depth)
            found = [self.pieces(child, depth + 1) for child in _children(part)]
            return _best(found) if kind == "multipart/alternative" else [piece for pieces in found for piece in pieces]
        return self._unparted(part, depth) if kind.startswith("multipart/") else self._leaf(part, kind)

    def _unparted(self, part: Message, depth: int) -> list[_Piece]:
        """A multipart whose boundary is not the one it names: the first line that looks like one is taken; without any, all is text."""
        data = _decoded(part)
        boundary = _BOUNDARY.search(data)
        if boundary is None:
            return self._leaf(part, "text/plain")
        head = b'Content-Type: multipart/mixed; boundary="' + boundary[1] + b'"\n\n'
        again, broken = parse(head + data)
        return self._leaf(part, "text/plain") if broken or not again.is_multipart() else self.pieces(again, depth + 1)

    def _embedded(self, part: Message, kind: str, depth: int) -> list[_Piece]:
        """A mail within the mail: its text is part of what was sent on. A delivery status is for machines."""
        if kind == "message/delivery-status":
            self.body.is_report = True
            return []
        out: list[_Piece] = []
        for child in _children(part):
            headers = Headers(child)
            lines = [
                f"{name}: {headers.text(name.lower())}"
                for name in ("From", "Date", "To", "Subject")
                if name.lower() in headers
            ]
            inner = self.pieces(child, depth + 1)
            text = "\n\n".join(piece.text for piece in inner)
            out.append(_Piece("plain", "\n".join(["---------- Forwarded message ----------", *lines, "", text])))
        return out

    def _leaf(self, part: Message, kind: str) -> list[_Piece]:
        name = _filename(part)
        data = _decoded(part)
        is_file = _disposition(part) == "attachment" or bool(name)
        if kind in _TNEF or name.lower() == "winmail.dat":
            self.body.flags.add("winmail_dat")
            is_file = True
        if kind == "text/calendar" or name.lower().endswith(".ics"):
            return self._calendar(part, name, data)
        # Text of another kind (enriched, markdown) without a name is what the sender wrote.
        if is_file or not kind.startswith("text/"):
            self._attach(part, kind, name, data)
            return []
        text = self._text(part, data)
        if kind == "text/html":
            full, unquoted = html_to_text(text)
            return [_Piece("html", full, unquoted)] if full else []
        return [_Piece("plain", text)] if text.strip() else []

    def _calendar(self, part: Message, name: str, data: bytes) -> list[_Piece]:
        self.body.has_calendar = True
        self._attach(part, "text/calendar", name, data, with_text=False)
        invitation = read_invitation(self._text(part, data), _parameter(part, "method"))
        return [_Piece("calendar", invitation.as_text())] if invitation else []

    def _text(self, part: Message, data: bytes) -> str:
        text, repaired = decode(data, _parameter(part, "charset"))
        if repaired:
            self.body.flags.add("charset_repaired")
        return text

    def _attach(self, part: Message, kind: str, name: str, data: bytes, with_text: bool = True) -> None:
        text = ""
        room = MAX_ATTACHED_TEXT_BYTES - self.attached_bytes
        if with_text and kind.startswith("text/") and room > 0:
            whole = self._text(part, data)
            text, cut = cut_text(html_to_text(whole)[0] if kind == "text/html" else whole, room)
            self.attached_bytes += len(text.encode())
            if cut:
                self.body.flags.add("truncated")
        place = f"part-{self.parts}"
        content_id = clean_line(str(part.get("content-id", "")), 200).strip("<> ")
        self.body.attachments.append(
            Attachment(
                id=content_id or place,
                name=name or f"{place} ({kind})",
                mime=clean_line(kind, 120),
                size_bytes=len(data),
                text=text,
            )
        )


def _best(alternatives: list[list[_Piece]]) -> list[_Piece]:
    """Of the same content in several forms: the first that is plain text, else HTML, else what there is. Never two of them."""
    for kind in ("plain", "html", "calendar"):
        for pieces in alternatives:
            if pieces and pieces[0].kind == kind:
                return pieces
    return []


def _children(part: Message) -> Iterator[Message]:
    payload = part.get_payload()
    if isinstance(payload, list):
        yield from (child for child in payload if isinstance(child, Message))


def _decoded(part: Message) -> bytes:
    """The part's bytes with its transfer encoding undone; what cannot be undone as it stands; b"" if nothing can be had."""
    try:
        encoding = str(part.get("content-transfer-encoding", "")).strip().lower()
        if encoding == "base64":
            payload = part.get_payload()
            return lenient_base64(payload) if isinstance(payload, str) else b""
        payload = part.get_payload(decode=True)
    except (*UNRULY, binascii.Error):
        return b""
    return payload if isinstance(payload, bytes) else b""


def _disposition(part: Message) -> str:
    try:
        return part.get_content_disposition() or ""
    except UNRULY:
        return ""


def _filename(part: Message) -> str:
    try:
        headers = Headers(part)
        if not (headers.raw("content-disposition") + headers.raw("content-type")).isascii():
            # The library would replace raw 8-bit bytes; as text they stay.
            part = Message()
            for name in ("content-disposition", "content-type"):
                if name in headers:
                    part[name] = headers.raw(name)
        return clean_line(decode_words(part.get_filename() or ""), 255)
    except UNRULY:
        return ""


def _parameter(part: Message, name: str) -> str:
    """A parameter of Content-Type, whatever its form (RFC 2231 gives a triple)."""
    try:
        value = part.get_param(name, "")
    except UNRULY:
        return ""
    if isinstance(value, tuple):
        value = value[2]
    return clean_line(str(value), 100)
