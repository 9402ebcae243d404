"""Bytes to text when the label is missing, wrong or unknown."""

from __future__ import annotations

import codecs

from charset_normalizer import from_bytes

from connectors.canonical import clean_text

# What mailers write → what they mean. The wider of two related sets is taken (WHATWG Encoding Standard, labels).
_ALIASES = {
    "ascii": "cp1252",
    "us-ascii": "cp1252",
    "ansi_x3.4-1968": "cp1252",
    "iso-8859-1": "cp1252",
    "iso8859-1": "cp1252",
    "iso-latin-1": "cp1252",
    "latin-1": "cp1252",
    "latin1": "cp1252",
    "iso-8859-8-i": "iso-8859-8",
    "iso-8859-8-e": "iso-8859-8",
    "iso-8859-9": "cp1254",
    "uft-8": "utf-8",
    "utf-8-mac": "utf-8",
    "utf8mb4": "utf-8",
    "unicode-1-1-utf-8": "utf-8",
    "unicode-1-1-utf-7": "utf-7",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "x-gbk": "gb18030",
    "euc-kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "windows-874": "cp874",
    "tis-620": "cp874",
    "macintosh": "mac_roman",
}
# Codecs of Python that no mail means: escapes, and two with quadratic cost.
_NEVER = {"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"}
_SAMPLE_BYTES = 16 * 1024
_DETECTABLE_BYTES = 24
"""Below this a guess is worse than cp1252."""
_BROKEN_SHARE = 0.1
"""Of the characters beyond ASCII, how many may be broken in a text that is still of its charset."""


def codec_of(label: str) -> str:
    """The codec for a charset label; "" if there is none to trust."""
    name = label.strip().strip("\"'").lower()
    name = _ALIASES.get(name, name)
    try:
        found = codecs.lookup(name).name
        b"a".decode(found, "ignore")  # Refuses transforms such as hex or zip.
    except (LookupError, ValueError, TypeError):
        return ""
    return "" if found.replace("-", "_") in _NEVER else found


def decode(data: bytes, label: str = "") -> tuple[str, bool]:
    """The text, clean, and whether the label had to be repaired (unknown, or not true of the bytes). Never raises.

    In order: the label (through the alias table), UTF-8, either of them if nearly all is true of it (one broken byte makes no other
    charset), detection, cp1252.
    """
    codec = codec_of(label) if label else ""
    if data.isascii() and codec in ("", "cp1252", "utf-8"):
        return clean_text(data.decode("ascii")), bool(label) and not codec
    claims_ascii = label.strip("\"' ").lower() in ("", "ascii", "us-ascii", "ansi_x3.4-1968")
    if codec and not claims_ascii:
        text = _strict(data, codec)
        if text is not None:
            return clean_text(text), False
    for text in (
        _strict(data, "utf-8"),
        _nearly(data, codec) if codec and not claims_ascii else None,
        _nearly(data, "utf-8"),
        _strict(data, _detected(data)),
    ):
        if text is not None:
            return clean_text(text), True
    return clean_text(_cp1252(data)), True


def decode_unlabelled(data: bytes) -> str:
    """Raw 8-bit bytes in a header: UTF-8 if they are, else cp1252."""
    text = _strict(data, "utf-8")
    return clean_text(text if text is not None else _cp1252(data))


def _nearly(data: bytes, codec: str) -> str | None:
    text = data.decode(codec, "replace")
    strange = sum(not char.isascii() for char in text)
    return text if text.count("\ufffd") <= strange * _BROKEN_SHARE else None


def _strict(data: bytes, codec: str) -> str | None:
    if not codec:
        return None
    if codec == "cp1252":
        return _cp1252(data)
    try:
        return data.decode(codec)
    except (UnicodeError, LookupError, ValueError):
        return None


def _cp1252(data: bytes) -> str:
    """Five bytes have no meaning in cp1252; browsers show the control characters of latin-1, which are dropped later."""
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _detected(data: bytes) -> str:
    sample = data[:_SAMPLE_BYTES]
    if len(sample) < _DETECTABLE_BYTES or b"\0" in sample:
        return ""
    best = from_bytes(sample).best()
    return best.encoding if best is not None else ""
