"""No bytes make reading raise: random ones, and mails that were damaged at random."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from connectors.base import Item
from connectors.mail.mbox import MboxSource
from connectors.mail.normalize import Found, normalize
from connectors.mail.quotes import new_text
from tests.unit.connectors.reading import OPTIONS, letter
from topics.errors import Refused
from topics.records import SourceEvent

NAMES = [
    "From",
    "To",
    "Cc",
    "Subject",
    "Date",
    "Message-ID",
    "References",
    "In-Reply-To",
    "Received",
    "Content-Type",
    "Content-Disposition",
]
NAMES += [
    "Content-Transfer-Encoding",
    "MIME-Version",
    "Auto-Submitted",
    "Return-Path",
    "Content-ID",
    "X-Gmail-Labels",
    "Sender",
]
VALUES = [
    b"multipart/mixed; boundary=b", b"multipart/alternative; boundary=\"b\"", b"message/rfc822", b"text/html; charset=\"", b"text/plain; charset*=x'y'%ff",
    b"text/calendar; method", b"base64", b"quoted-printable", b"x-uuencode", b"attachment; filename*0*=utf-16''%ff%", b"=?utf-7?B?+AGE?= =?x?Q?=ZZ?=",
    b"\"a\\ <b@c>, (x(y <d@", b"<[a]@b>", b"Mon, 99 Foo 99999 25:61:61 +9999", b"Mon, 2 Mar 2026 10:00:00 +2400", b"message/delivery-status", b"multipart/",
    b"text/plain; charset=utf-7", b"message/partial; id=x", b"application/ms-tnef; name*0=win; name*1*=mail.dat",
]  # fmt: skip
PIECES = [
    b"--b\n", b"--b--\n", b"\n", b"\n\n", b"From x\n", b"> q\n", b"On 1 a@b wrote:\n", b"=E4=\n", b"begin 666 x\nM\x01\n", b"+2AD-", b"</",
    b"<p style=display:none>", b"<blockquote type=cite>", b"BEGIN:VEVENT\nDTSTART;TZID=\"x:y\n", b"\0\xff\xfe", b"Content-Type: text/html\n\n",
    b"\r\r\n", b"Fra: x\nTil: y\nEmne: z\n",
]  # fmt: skip

header = st.builds(
    lambda name, value: name.encode() + b": " + value + b"\n",
    st.sampled_from(NAMES),
    st.sampled_from(VALUES) | st.binary(max_size=60),
)
body = st.lists(st.sampled_from(PIECES) | header | st.binary(max_size=80), max_size=12).map(b"".join)
mails = st.builds(lambda head, rest: b"".join(head) + b"\n" + rest, st.lists(header, max_size=10), body)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A sound mail with bytes exchanged, removed and put in."""
    body = "--b\nContent-Type: text/html; charset=utf-8\n\n<p>x</p>\n--b--"
    raw = bytearray(letter(body, "Content-Type: multipart/mixed; boundary=b", "Subject: =?utf-8?Q?a?="))
    for _ in range(draw(st.integers(1, 12))):
        at = draw(st.integers(0, len(raw)))
        raw[at : at + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
    return bytes(raw)


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=2000) | mails | damaged())
def test_no_bytes_make_the_parser_raise(raw: bytes) -> None:
    outcome = normalize(raw, Found("mbox", "x"), OPTIONS)
    if isinstance(outcome, SourceEvent):
        # What is built can also be sent and read again.
        assert SourceEvent.model_validate_json(outcome.model_dump_json()) == outcome
        assert outcome.text


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(mails | st.binary(max_size=200), max_size=4))
def test_no_mbox_makes_the_reader_raise_anything_but_a_refusal(tmp_path: Path, parts: list[bytes]) -> None:
    path = tmp_path / "a.mbox"
    path.write_bytes(b"\n".join(b"From x\n" + part for part in parts))

    def read() -> list[Item]:
        try:
            return list(MboxSource().read(path, OPTIONS))
        except Refused:
            return []

    items = read()
    assert [item.cursor for item in items] == [item.cursor for item in read()]


@settings(max_examples=200, deadline=None)
@given(
    st.text(max_size=400)
    | st.lists(st.sampled_from([piece.decode("latin-1") for piece in PIECES]), max_size=20).map("".join)
)
def test_cutting_keeps_a_part_of_the_text_and_never_all_of_nothing(text: str) -> None:
    kept, how = new_text("Re: x", text)
    assert kept in text
    assert (kept == text) or (how and kept)
