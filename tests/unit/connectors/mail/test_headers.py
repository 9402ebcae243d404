from __future__ import annotations

from datetime import UTC, datetime

import pytest

from connectors.mail.charsets import codec_of, decode
from connectors.mail.headers import decode_words, instant, lenient_base64
from tests.unit.connectors.reading import NOW, letter, mail, stated


@pytest.mark.parametrize(
    "date",
    [
        "Wed, 33 Sep 2007 10:00:00 +0000",
        "Mon, 2 Mar 2026 31:00:00 +0000",
        "yesterday",
        "\x00",
        "Mon, 2 Mar 1000 10:00:00 +1400",
    ],
)
def test_a_date_that_cannot_be_falls_back_to_the_place_of_finding_and_is_flagged(date: str) -> None:
    event = mail(letter("Hello.", date=date))
    assert (event.occurred_at, event.flags) == (NOW, ("date_header_invalid",))
    assert event.version == event.content_hash[:16]


def test_a_bad_date_falls_back_to_the_latest_receipt_first() -> None:
    event = mail(letter("Hello.", "Received: from a by b; Tue, 3 Mar 2026 08:00:00 +0000", date="Wed, 33 Sep 2007"))
    assert event.occurred_at == datetime(2026, 3, 3, 8, tzinfo=UTC)


def test_a_date_long_after_the_receipt_is_not_believed() -> None:
    event = mail(
        letter("Hello.", "Received: from a by b; Tue, 3 Mar 2026 08:00:00 +0000", date="Tue, 3 Mar 2037 08:00:00 +0000")
    )
    assert (event.occurred_at.year, event.flags) == (2026, ("date_header_invalid",))


def test_a_date_without_a_zone_counts_as_utc_and_is_flagged() -> None:
    event = mail(letter("Hello.", date="Mon, 2 Mar 2026 10:00:00 -0000"))
    assert (event.occurred_at, event.flags) == (datetime(2026, 3, 2, 10, tzinfo=UTC), ("tz_unknown",))
    assert instant("Mon, 2 Mar 2026 10:00:00")[1] is False


def test_raw_eight_bit_bytes_in_a_name_are_read() -> None:
    event = mail(b"From: J\xf6rg <j@example.com>\nSubject: Gr\xc3\xbc\xc3\x9fe\n\nHello.")
    assert (event.actor.name, event.actor.address, event.title) == ("Jörg", "j@example.com", "Grüße")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("=?utf-8?B?w6k=?=", "é"),
        ("=?utf-8?B?w6k?=", "é"),
        ("=?utf-8?B?w6?= =?utf-8?B?qQ?=", "Ã©"),
        ("=?utf-8?Q?=C3?= =?utf-8?Q?=A9_b?=", "é b"),
        ("=?bogus?Q?caf=C3=A9?= x", "café x"),
        ("=?windows-1251?Q?=C4=EE=E1=F0=FB=E9?=", "Добрый"),
        ("a =?utf-8*en?Q?b?= c", "a b c"),
        ("=?utf-8?X?b?=", "=?utf-8?X?b?="),
    ],
)
def test_encoded_words_are_read_also_when_broken(value: str, shown: str) -> None:
    if shown == "Ã©":  # Two halves of base64 that are no bytes by themselves stay harmless.
        assert isinstance(decode_words(value), str)
    else:
        assert decode_words(value) == shown


@pytest.mark.parametrize("label", ["bogus", "uft-8", "unknown", '"', "hex", "idna", "\0", "x" * 5000, "utf-8"])
def test_no_charset_label_loses_a_text(label: str) -> None:
    text, repaired = decode("Grüße aus Köln, schöne Ostern".encode(), label)
    assert text == "Grüße aus Köln, schöne Ostern"
    assert repaired is (label not in ("uft-8", "utf-8"))


@pytest.mark.parametrize(
    ("label", "data", "text"),
    [
        ("windows-1251", b"\xc4\xee\xe1\xf0\xfb\xe9", "Добрый"),
        ("gb2312", "镕".encode("gb18030"), "镕"),
        ("iso-8859-1", b"\x80 \x93x\x94", "€ “x”"),
        ("iso-8859-8-i", "שלום".encode("iso-8859-8"), "שלום"),
        ("us-ascii", b"\xe9t\xe9", "été"),
    ],
)
def test_a_label_means_the_wider_of_two_related_sets(label: str, data: bytes, text: str) -> None:
    assert decode(data, label)[0] == text


def test_transforms_and_slow_codecs_are_no_charsets() -> None:
    assert [codec_of(label) for label in ("hex", "zip", "rot13", "punycode", "undefined", "unicode_escape")] == [""] * 6


def test_base64_is_read_in_both_alphabets_without_padding() -> None:
    assert lenient_base64("SGkg4pyMCg") == "Hi ✌\n".encode()
    assert lenient_base64("-_-_") == b"\xfb\xff\xbf"


@pytest.mark.parametrize("value", ["<[abc]@x>", "<>", "a b", "<a@b> <c@d>", "\udcff", "<a\0b>"])
def test_a_message_id_that_is_not_sane_is_replaced_by_the_hash_or_read(value: str) -> None:
    raw = b"From: a@b.c\nMessage-ID: " + value.encode("utf-8", "surrogateescape") + b"\n\nHello."
    object_id = mail(raw).object_id
    assert object_id.startswith("sha256:") or object_id in ("[abc]@x", "ab")


def test_headers_state_who_wrote_to_whom_and_a_name_is_a_claim() -> None:
    event = mail(letter("See file.", "Cc: cem@EXAMPLE.org, Ann <ann@example.com>", "In-Reply-To: <m0@example.com>"))
    assert stated(event) == [
        ("Ann Lee", "has_address", "ann@example.com"),
        ("ann@example.com", "wrote_to", "bob@example.org"),
        ("ann@example.com", "wrote_to", "cem@example.org"),
        ("mail m1@example.com", "reply_to", "mail m0@example.com"),
    ]
    assert "is the name that mail from ann@example.com gave" in event.stated_facts[0].description
    assert event.facts["to"] == ("bob@example.org",)
    assert "is_from_me" not in event.facts
    assert event.parent_id == "m0@example.com"


def test_a_circular_states_no_hundred_facts() -> None:
    crowd = ", ".join(f"p{number}@example.org" for number in range(300))
    event = mail(letter("Hello all.", f"Cc: {crowd}"))
    assert len(event.stated_facts) == 1
    assert len(event.participants) == 200
    assert "participants_cut" in event.flags


def test_threads_join_by_references_in_any_mailbox() -> None:
    first = mail(letter("One."))
    second = mail(
        letter("Two.", "References: <m1@example.com> <x@y>", "Subject: Re: Plan").replace(
            b"<m1@example.com>\nDate", b"<m2@example.com>\nDate"
        )
    )
    assert first.thread_id == second.thread_id == "m1@example.com"
    assert mail(b"From: a@b.c\nSubject: Re: AW: Plan\n\nx").thread_id == "subject:plan"


@pytest.mark.parametrize(
    "value",
    [
        "Ann Lee ann@example.com",
        "<ann@example.com",
        "ann@example.com>,,;",
        '"Lee, Ann" <ann@example.com>',
        "ann@example.com (Ann)",
    ],
)
def test_a_sender_is_found_in_headers_that_do_not_parse(value: str) -> None:
    assert mail(f"From: {value}\n\nHello.").actor.address == "ann@example.com"


def test_a_mail_without_sender_is_by_a_ghost_and_a_machine_is_a_bot() -> None:
    assert mail(b"Subject: x\n\nHello.").actor.kind == "ghost"
    assert mail(b"From: no-reply@example.com\n\nHello.").actor.kind == "bot"
    assert mail(letter("Away.", "Auto-Submitted: auto-replied")).actor.kind == "bot"
