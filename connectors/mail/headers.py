"""Header values as text, addresses, ids and instants, from whatever stands in the mail. Nothing here raises."""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime

from connectors.canonical import clean_line
from connectors.mail.charsets import decode, decode_unlabelled

UNRULY = (ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError)
"""What the standard library's mail code raises on rubbish."""

_MAX_HEADER_CHARS = 64 * 1024
_ENCODED_WORD = re.compile(r"=\?([^?\s]{1,64})\?([bBqQ])\?([^?\r\n]*)\?=")
_BETWEEN_WORDS = re.compile(r"(\?=)[ \t\r\n]+(=\?[^?\s]{1,64}\?[bBqQ]\?)")
_ADDRESS = re.compile(r"[^\s<>,;:\"()\[\]]{1,128}@[^\s<>,;:\"()\[\]]{1,255}")
_MESSAGE_ID = re.compile(r"<([^\s<>]{3,512})>")
_BARE_ID = re.compile(r"[^\s<>\"(),;]{1,256}@[^\s<>\"(),;]{1,255}")
_FIRST_YEAR, _LAST_YEAR = 1970, 2100


@dataclass(frozen=True, slots=True)
class Address:
    name: str
    """The display name: a claim of whoever wrote the header."""
    address: str
    """With the domain in lower case; "" if there is none."""


class Headers:
    """A mail's header fields by lower-case name, decoded when asked."""

    def __init__(self, message: Message) -> None:
        self._raw: dict[str, list[str]] = {}
        for name, value in message.raw_items():
            self._raw.setdefault(str(name).lower(), []).append(str(value)[:_MAX_HEADER_CHARS])

    def __contains__(self, name: str) -> bool:
        return name in self._raw

    def __len__(self) -> int:
        return len(self._raw)

    def raw(self, name: str) -> str:
        """The first field of the name with 8-bit bytes read, encoded words left; "" if absent."""
        return _eight_bit(self._raw[name][0]) if name in self._raw else ""

    def text(self, name: str) -> str:
        """The first field of the name as one line; "" if absent."""
        return clean_line(decode_words(self.raw(name)))

    def all(self, name: str) -> list[str]:
        return [_eight_bit(value) for value in self._raw.get(name, [])]

    def addresses(self, name: str) -> tuple[Address, ...]:
        """Of all fields of the name, in order, without repeats; () if absent or nothing is an address or a name."""
        found = (address for value in self.all(name) for address in _addresses(value))
        return tuple(dict.fromkeys(found))

    def ids(self, name: str) -> tuple[str, ...]:
        """Message ids without their angle brackets, in order."""
        value = self.raw(name)
        return tuple(dict.fromkeys(_MESSAGE_ID.findall(value) or _BARE_ID.findall(value)))

    def message_id(self) -> str:
        """ "" if absent or not sane: then the mail is known by its hash."""
        found = self.ids("message-id")
        return clean_line(found[0]) if len(found) == 1 else ""


def decode_words(value: str) -> str:
    """RFC 2047 words, also broken ones: no padding, an unknown charset, a character split over two words."""
    if "=?" not in value:
        return value
    joined = _BETWEEN_WORDS.sub(r"\1\2", value)
    out: list[str] = []
    pending: tuple[str, bytes] = ("", b"")
    end = 0
    for match in _ENCODED_WORD.finditer(joined):
        charset, data = match[1].partition("*")[0], _word_bytes(match[2], match[3])
        if match.start() == end and pending[0].lower() == charset.lower():
            pending = (charset, pending[1] + data)
        else:
            out += [decode(pending[1], pending[0])[0], joined[end : match.start()]]
            pending = (charset, data)
        end = match.end()
    return "".join([*out, decode(pending[1], pending[0])[0], joined[end:]])


def instant(value: str) -> tuple[datetime | None, bool]:
    """A date field as a UTC instant and whether its zone is known; (None, False) if it is no date of 1970 to 2100."""
    try:
        parsed = parsedate_to_datetime(clean_line(value))
        known = parsed.tzinfo is not None
        at = parsed.astimezone(UTC) if known else parsed.replace(tzinfo=UTC)
    except (*UNRULY, OverflowError):
        return None, False
    return (at, known) if _FIRST_YEAR <= at.year <= _LAST_YEAR else (None, False)


def lenient_base64(data: str) -> bytes:
    """Both alphabets, padding optional, anything else ignored."""
    kept = re.sub(r"[^A-Za-z0-9+/]", "", data.translate({0x2D: "+", 0x5F: "/"}))
    kept = kept[: len(kept) - 1] if len(kept) % 4 == 1 else kept
    try:
        return base64.b64decode(kept + "=" * (-len(kept) % 4))
    except (binascii.Error, ValueError):
        return b""


def _eight_bit(value: str) -> str:
    """The parser keeps raw bytes as surrogates; anything else in the value is ASCII already."""
    if value.isascii():
        return value
    return decode_unlabelled(value.encode("utf-8", "surrogateescape"))


def _word_bytes(encoding: str, data: str) -> bytes:
    if encoding in "bB":
        return lenient_base64(data)
    return binascii.a2b_qp(data.encode("utf-8", "replace"), header=True)


def _addresses(value: str) -> list[Address]:
    try:
        pairs = getaddresses([" ".join(value.split())])
    except UNRULY:
        pairs = []
    found = [_address(name, address) for name, address in pairs]
    found = [address for address in found if address.address]
    if found:
        return found
    # No list that parses: take what looks like an address, else the whole as a name.
    bare = [_address("", address) for address in _ADDRESS.findall(value)]
    name = clean_line(decode_words(value), 200)
    return bare or ([Address(name, "")] if name else [])


def _address(name: str, address: str) -> Address:
    local, at, domain = clean_line(decode_words(address), 320).rpartition("@")
    whole = f"{local}@{domain.lower()}" if at and local and domain and " " not in local + domain else ""
    shown = clean_line(decode_words(name), 200).strip("'\" ")
    return Address("" if shown.lower() == whole.lower() else shown, whole)
