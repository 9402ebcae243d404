from __future__ import annotations

from pathlib import Path

from connectors.registry import detect_source
from tests.unit.connectors.reading import events, read_all, skipped

DATA = Path(__file__).parents[3] / "strandline" / "demo_data"


def test_the_demos_mail_is_read_whole() -> None:
    items = read_all(detect_source(DATA / "mail.mbox"), DATA / "mail.mbox")
    assert (len(events(items)), skipped(items)) == (12, [])
    assert all(event.parse_status == "ok" and not event.flags for event in events(items))


def test_the_demos_chat_is_read_whole_and_in_order_of_days() -> None:
    items = read_all(detect_source(DATA / "slack-export"), DATA / "slack-export")
    found = events(items)
    assert (len(found), [each.reason for each in skipped(items)]) == (25, ["bookkeeping"])
    assert [event.occurred_at.date() for event in found] == sorted(event.occurred_at.date() for event in found)
    assert {event.container.name for event in found if event.container} == {"general", "project-kite", "office"}


def test_a_quote_in_the_demo_says_nothing_twice() -> None:
    mails = {
        event.object_id: event for event in events(read_all(detect_source(DATA / "mail.mbox"), DATA / "mail.mbox"))
    }
    moved = mails["kickoff-moved@betalabs.example"]
    assert "5 March" not in moved.text
    assert "5 March" in moved.text_full
