from __future__ import annotations

import pytest

from connectors.mail.quotes import new_text
from tests.unit.connectors.reading import letter, mail

DANISH = "Fint med mig.\n\nFra: Ann Lee <ann@example.com>\nSendt: 2. marts 2026 10:00\nTil: Bob\nEmne: Møde\n\nSkal vi mødes?"


def test_a_danish_header_block_is_cut() -> None:
    assert new_text("SV: Møde", DANISH) == ("Fint med mig.", "header_block")
    event = mail(letter(DANISH, "In-Reply-To: <m0@example.com>", "Content-Type: text/plain; charset=utf-8"))
    assert (event.text, event.text_full, event.strip_method) == ("Fint med mig.", DANISH, "header_block")


def test_a_header_block_in_a_mail_that_answers_nothing_stays() -> None:
    assert new_text("Blocked mail", DANISH) == (DANISH, "")


@pytest.mark.parametrize(
    "introduction",
    [
        "Am Mo., 2. März 2026 um 10:00 Uhr schrieb Ann <\nann@example.com>:",
        "Den mån 2 mars 2026 kl 10:00 skrev Ann Lee <\nann@example.com>:",
        "Le lun. 2 mars 2026 à 10:00, Ann Lee <ann@example.com> a\nécrit :",
        "El lun, 2 mar 2026 a las 10:00, Ann (<\nann@example.com>) escribió:",
        "On Mon, Mar 2, 2026 at 10:00 AM Ann Lee <ann@example.com> wrote:",
        "On Mon, 2 Mar 2026, Ann wrote:",
    ],
)
def test_an_introduction_is_cut_with_its_quote_also_when_wrapped(introduction: str) -> None:
    assert new_text("Re: x", f"Yes.\n\n{introduction}\n> Shall we?\n>> Or not?\n") == ("Yes.", "attribution")


@pytest.mark.parametrize(
    "mark",
    [
        "---------- Forwarded message ---------\nFrom: Cem",
        "Begin forwarded message:\n\n> From: Cem",
        "-------- Weitergeleitete Nachricht --------",
    ],
)
def test_a_forwarded_text_is_kept(mark: str) -> None:
    text = f"FYI\n\n{mark}\n\nInvoice 42"
    assert new_text("Invoice", text) == (text, "")
    assert new_text("Fwd: Invoice", "FYI\n\nOn 1 May Ann <a@b.c> wrote:\n> Invoice 42")[1] == ""


def test_a_paragraph_that_only_begins_like_an_introduction_stays() -> None:
    text = "On the server, run `make`.\nThen we wrote:\n\nAll is well on 3 March."
    assert new_text("Re: server", text) == (text, "")


def test_answers_between_quotes_stay() -> None:
    text = "On Mon, 2 Mar 2026, Ann wrote:\n> Tea?\nYes.\n> Coffee?\nNo."
    assert new_text("Re: x", text) == (text, "")


def test_a_text_that_is_all_quote_stays() -> None:
    text = "On Mon, 2 Mar 2026, Ann wrote:\n> Tea?"
    assert new_text("Re: x", text) == (text, "")


def test_a_signature_is_cut_and_a_list_of_dashes_is_not() -> None:
    assert new_text("x", "Hello.\n-- \nAnn Lee\nExample Ltd") == ("Hello.", "signature")
    assert new_text("x", "- one\n- two\n---\nend") == ("- one\n- two\n---\nend", "")


def test_html_marks_tell_the_quote() -> None:
    html = "<div>Yes.</div><div class='gmail_quote'><div>On Monday Ann wrote:</div><blockquote>Tea?</blockquote></div>"
    event = mail(letter(html, "Subject: Re: Tea", "Content-Type: text/html"))
    assert (event.text, event.strip_method) == ("Yes.", "html_quote")
    assert "Tea?" in event.text_full


def test_html_answers_between_quotes_stay() -> None:
    html = "<blockquote type=cite>Tea?</blockquote><p>Yes.</p><blockquote type=cite>Coffee?</blockquote><p>No.</p>"
    assert mail(letter(html, "Content-Type: text/html")).text.split() == ["Tea?", "Yes.", "Coffee?", "No."]


def test_html_of_outlook_is_cut_where_the_quoted_mail_starts() -> None:
    html = "<div>Yes.</div><hr><div id=divRplyFwdMsg><b>From:</b> Ann</div><div>Tea?</div>"
    assert mail(letter(html, "Subject: RE: Tea", "Content-Type: text/html")).text == "Yes."
    assert "Tea?" in mail(letter(html, "Subject: FW: Tea", "Content-Type: text/html")).text


@pytest.mark.parametrize(
    "line",
    [
        "On 1 @ wrote:\n",
        "> \n",
        "From: x\n",
        "On 1 @ wrote:\n> x\n",
        "\n",
        "--\n",
        "On " + "a" * 180 + "\n",
        "Fra: \nSendt: \n",
    ],
)
def test_no_text_makes_cutting_slow(line: str) -> None:
    # Quadratic work would take minutes: the test's deadline would tell.
    text = line * (190_000 // len(line))
    kept, _ = new_text("Re: x", text)
    assert kept in text
