"""Tokens of the event stream: where a reader is on all partitions of `remember.runs`, in one short text.

Any server process can continue from it, since it names places on the log and nothing of the process that made it.
Layout: base64url without padding over a version byte, four bytes that tell the log, and one LEB128 number a partition.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence

from topics.errors import Refused
from topics.registry import topic

TOPIC = "remember.runs"
PARTITIONS = topic(TOPIC).partitions

Vector = tuple[int, ...]
"""Per partition, in order, the offset of the record that is read next."""

_VERSION = 1
_LONGEST_TOKEN = 4 * (1 + 4 + 10 * PARTITIONS) // 3 + 4


def encode_token(log_id: str, vector: Sequence[int]) -> str:
    """The token of a place."""
    raw = bytearray([_VERSION])
    raw += binascii.crc32(log_id.encode()).to_bytes(4, "big")
    for offset in vector:
        raw += _leb128(offset)
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def decode_token(token: str, log_id: str) -> Vector:
    """The place; the beginning for a token of another log, since all of this one is new to its owner. Raises Refused for what is no token."""
    try:
        if len(token) > _LONGEST_TOKEN:
            raise ValueError
        raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
        if len(raw) < 5 or raw[0] != _VERSION:
            raise ValueError
        vector = _numbers(raw[5:])
    except ValueError:
        raise Refused(
            "this is no token of an event stream: send the last `id` that a stream gave, or none to start now",
            field="Last-Event-ID",
        ) from None
    return vector if raw[1:5] == binascii.crc32(log_id.encode()).to_bytes(4, "big") else (0,) * PARTITIONS


def _leb128(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _numbers(raw: bytes) -> Vector:
    numbers, number, shift = [], 0, 0
    for byte in raw:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number, shift = 0, 0
    if shift or len(numbers) != PARTITIONS or max(numbers) >= 2**63:
        raise ValueError
    return tuple(numbers)
