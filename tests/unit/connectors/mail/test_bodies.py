from __future__ import annotations

import pytest

from connectors.base import ReadOptions, Skipped
from connectors.canonical import CUT_MARKER
from connectors.mail.calendar import read_invitation
from connectors.mail.html import html_to_text
from connectors.mail.normalize import Found, normalize
from tests.unit.connectors.reading import NOW, OPTIONS, letter, mail

INVITE = (
    "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nBEGIN:VEVENT\r\nSUMMARY:Budget\\, review\r\nDTSTART;TZID=Europe/Berlin:20260305T100000\r\n"
    'DTEND;TZID=Europe/Berlin:20260305T110000\r\nORGANIZER;CN="Lee: Ann":mailto:ann@example.com\r\nLOCATION:Room \r\n 4\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n'
)


def parts(*bodies: str, kind: str = "mixed") -> bytes:
    joined = "".join(f"--b\n{body}\n" for body in bodies)
    return letter(f"{joined}--b--\n", "MIME-Version: 1.0", f'Content-Type: multipart/{kind}; boundary="b"')


@pytest.mark.parametrize("label", ["bogus", "uft-8", "unknown", '"', "hex"])
def test_a_body_with_a_strange_charset_is_not_lost(label: str) -> None:
    event = mail(
        letter(
            "Grüße aus Köln, schöne Ostern",
            f"Content-Type: text/plain; charset={label}",
            "Content-Transfer-Encoding: 8bit",
        )
    )
    assert event.text == "Grüße aus Köln, schöne Ostern"


def test_a_windows_body_is_read() -> None:
    assert mail(letter(b"\xc4\xee\xe1\xf0\xfb\xe9", "Content-Type: text/plain; charset=windows-1251")).text == "Добрый"


def test_url_safe_base64_without_padding_is_read() -> None:
    event = mail(letter("SGkg4pyMCg", "Content-Type: text/plain; charset=utf-8", "Content-Transfer-Encoding: base64"))
    assert event.text == "Hi ✌"


def test_html_alone_becomes_text_without_what_nobody_sees() -> None:
    html = (
        "<html><head><title>T</title><style>p{}</style></head><body><!-- no --><script>no()</script><p style='DISPLAY : none'>no</p>"
        "<p>Ann &amp; Bob</p><div>Line one<br>Line two</div><ul><li>a</li><li>b</li></ul><table><tr><td>1</td><td>2</td></tr></table></body></html>"
    )
    assert mail(letter(html, "Content-Type: text/html")).text == "Ann & Bob\n\nLine one\nLine two\n- a\n- b\n1 2"


def test_plain_text_is_taken_before_html_and_html_before_nothing() -> None:
    plain, html = "Content-Type: text/plain\n\nplain words", "Content-Type: text/html\n\n<p>html words</p>"
    assert mail(parts(plain, html, kind="alternative")).text == "plain words"
    assert mail(parts("Content-Type: text/plain\n\n ", html, kind="alternative")).text == "html words"


def test_an_invitation_alone_becomes_sentences() -> None:
    event = mail(letter(INVITE, "Content-Type: text/calendar; charset=utf-8"))
    assert event.text.splitlines() == [
        "Invitation: Budget, review",
        "When: 2026-03-05 10:00 (Europe/Berlin) to 2026-03-05 11:00 (Europe/Berlin)",
        "Where: Room 4",
        "Organiser: Lee: Ann <ann@example.com>",
    ]
    assert event.facts["has_calendar_part"] is True


@pytest.mark.parametrize(
    "ics",
    ["", "BEGIN:VCALENDAR", "BEGIN:VEVENT\nDTSTART:soon\nSUMMARY", "END:VEVENT\nEND:X", "BEGIN:VEVENT\n:\n;=\n\\"],
)
def test_a_broken_calendar_never_raises(ics: str) -> None:
    found = read_invitation(ics)
    assert found is None or found.as_text()


def test_attachments_are_named_and_small_text_travels() -> None:
    event = mail(
        parts(
            "Content-Type: text/plain\n\nSee the files.",
            'Content-Type: text/csv; name="a.csv"\nContent-Disposition: attachment\n\n1,2',
            "Content-Type: application/pdf\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename*=utf-8''%C3%A9.pdf\n\nAAAA",
        )
    )
    assert [(file.name, file.mime, file.size_bytes, file.text) for file in event.attachments] == [
        ("a.csv", "text/csv", 3, "1,2"),
        ("é.pdf", "application/pdf", 3, ""),
    ]
    assert event.text == "See the files."


def test_a_mail_of_files_alone_is_known_by_their_names() -> None:
    event = mail(parts("Content-Type: application/pdf\nContent-Disposition: attachment; filename=a.pdf\n\nx"))
    assert (event.text, event.flags) == ("Attachments: a.pdf", ("no_text",))


def test_winmail_dat_is_named() -> None:
    event = mail(
        letter(
            "AAAA",
            "Subject: Plan",
            'Content-Type: application/ms-tnef; name="winmail.dat"',
            "Content-Transfer-Encoding: base64",
        )
    )
    assert event.flags == ("no_text", "winmail_dat")
    assert event.parse_status == "degraded"


def test_a_mail_attached_as_a_whole_is_kept_as_a_forward() -> None:
    event = mail(
        parts(
            "Content-Type: text/plain\n\nFYI",
            "Content-Type: message/rfc822\n\nFrom: cem@example.org\nSubject: Invoice 42\n\nPlease pay.",
        )
    )
    assert event.text.startswith(
        "FYI\n\n---------- Forwarded message ----------\nFrom: cem@example.org\nSubject: Invoice 42"
    )
    assert event.text.endswith("Please pay.")


def test_a_bounce_is_known() -> None:
    raw = parts(
        "Content-Type: text/plain\n\nNot delivered.",
        "Content-Type: message/delivery-status\n\nStatus: 5.0.0",
        kind="report",
    )
    assert mail(raw).facts["is_bounce"] is True


def test_a_six_megabyte_html_body_is_cut_with_a_marker_and_keeps_its_metadata() -> None:
    event = mail(letter(f"<p>{'word ' * 1_300_000}</p>", "Content-Type: text/html", "Subject: Long"))
    assert len(event.text.encode()) <= 256 * 1024
    assert event.text.endswith(CUT_MARKER)
    assert (event.title, event.flags) == ("Long", ("truncated",))


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 400_000 + "end",
        "<b a=1>" * 20_000 + "<p>x" * 20_000 + "end",
        "<" * 300_000 + " end",
        "<script>" * 100_000,
        "<!--" * 100_000,
    ],
)
def test_hostile_html_costs_no_more_than_its_length(html: str) -> None:
    # The parser alone takes minutes for the first: the test's deadline would tell.
    full, _ = html_to_text(html)
    assert full.endswith("end") or "end" not in html


def test_deeply_nested_parts_end() -> None:
    raw = (
        b"From: a@b.c\n"
        + b"".join(b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (n, n) for n in range(3000))
        + b"\n\ndeep"
    )
    assert normalize(raw, Found("mbox", "x"), OPTIONS)


def test_what_mail_stores_note_in_a_mail_makes_no_new_version() -> None:
    raw = letter("Hello.")
    noted = raw.replace(b"To: Bob", b"Status: RO\nX-Gmail-Labels: Inbox,\n Work\nTo: Bob")
    assert mail(raw).event_id == mail(noted + b"\n\n").event_id
    assert mail(raw).event_id != mail(letter("Hello!")).event_id


def test_a_boundary_that_is_named_wrongly_is_found() -> None:
    raw = letter(
        "--real\nContent-Type: text/plain\n\nwords\n--real--\n", 'Content-Type: multipart/mixed; boundary="named"'
    )
    assert (mail(raw).text, mail(raw).flags) == ("words", ("structure_repaired",))


def test_a_file_name_in_raw_bytes_is_read() -> None:
    raw = letter(b"x", "Content-Type: application/pdf").replace(
        b"Content-Type", b'Content-Disposition: attachment; filename="\xfcber.pdf"\nContent-Type'
    )
    assert mail(raw).attachments[0].name == "über.pdf"


def test_one_broken_byte_makes_no_other_charset_of_a_text() -> None:
    raw = letter("Привет, это письмо на русском языке".encode() + b"\xd0 !", "Content-Type: text/plain; charset=utf-8")
    assert mail(raw).text == "Привет, это письмо на русском языке\ufffd !"


def test_a_bounce_stays_whole() -> None:
    text = "Not delivered.\n\n----- Original Message -----\nFrom: a@b.c\nTo: d@e.f\nSubject: x"
    assert mail(letter(text, "Return-Path: <>", "In-Reply-To: <m0@x>", "Content-Type: text/plain")).strip_method == ""


def test_a_binary_file_is_no_mail() -> None:
    outcome = normalize(b"\xd0\xcf\x11\xe0\0\0\0", Found("maildir", "x"), OPTIONS)
    assert isinstance(outcome, Skipped)
    assert outcome.reason == "not_a_mail"


def test_an_empty_mail_is_skipped_with_the_reason() -> None:
    for raw in (b"", b"\n\n", b"From: a@b.c\n\n"):
        outcome = normalize(raw, Found("mbox", "x", arrived_at=NOW), OPTIONS)
        assert isinstance(outcome, Skipped)
        assert outcome.reason == "empty"


def test_ones_own_addresses_are_marked_when_known() -> None:
    event = mail(letter("Hello."), ReadOptions("ann", self_ids=frozenset({"ann@example.com"})))
    assert event.facts["is_from_me"] is True
    assert event.actor.is_self
