"""Wednesday, 12 March 2025, 10:30 UTC is "now" throughout."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.models.local.dates import find_dates

NOW = datetime(2025, 3, 12, 10, 30, tzinfo=UTC)


def iso(text: str, *, past: bool = False) -> list[str]:
    return [mention.iso for mention in find_dates(text, NOW, past=past)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on 2025-03-04", "2025-03-04"),
        ("at 2025-03-04T15:00Z", "2025-03-04T15:00Z"),
        ("at 2025-03-04 15:00+02:00", "2025-03-04T13:00Z"),
        ("in 2025-03", "2025-03"),
        ("on March 3, 2025", "2025-03-03"),
        ("on 3 March 2025", "2025-03-03"),
        ("Friday, March 14, 2025 at 9:30 am", "2025-03-14T09:30Z"),
        ("on March 20th", "2025-03-20"),
        ("on the 3rd of March", "2026-03-03"),
        ("in March 2024", "2024-03"),
        ("in March", "2025-03"),
        ("in May", "2025-05"),
        ("next June", "2025-06"),
        ("since 2019", "2019"),
        ("Q3 2025", "2025-Q3"),
        ("the third quarter of 2024", "2024-Q3"),
        ("today", "2025-03-12"),
        ("tomorrow at noon", "2025-03-13T12:00Z"),
        ("at 15:30 tomorrow", "2025-03-13T15:30Z"),
        ("the day after tomorrow", "2025-03-14"),
        ("on Friday", "2025-03-14"),
        ("this Friday", "2025-03-14"),
        ("next Friday", "2025-03-21"),
        ("last Friday", "2025-03-07"),
        ("on Friday at 3pm", "2025-03-14T15:00Z"),
        ("on Wednesday", "2025-03-12"),
        ("next week", "2025-W12"),
        ("last month", "2025-02"),
        ("this year", "2025"),
        ("next quarter", "2025-Q2"),
        ("in two weeks", "2025-03-26"),
        ("in a month", "2025-04"),
        ("3 days ago", "2025-03-09"),
        ("a year ago", "2024"),
        ("by the end of the month", "2025-03-31"),
        ("at the end of 2025", "2025-12-31"),
        ("by the end of June 2025", "2025-06-30"),
        ("by the 15th", "2025-03-15"),
        ("by the 3rd", "2025-04-03"),
        ("on 25/12/2025", "2025-12-25"),
        ("on 12/25/2025", "2025-12-25"),
        ("am 4.3.2025", "2025-03-04"),
    ],
)
def test_an_expression_is_one_date_no_more_exact_than_said(text: str, expected: str) -> None:
    assert iso(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("on Monday", "2025-03-10"),
        ("on Wednesday", "2025-03-12"),
        ("in May", "2024-05"),
        ("on March 3", "2025-03-03"),
        ("on March 20", "2024-03-20"),
    ],
)
def test_in_a_sentence_about_the_past_bare_dates_lie_behind(text: str, expected: str) -> None:
    assert iso(text, past=True) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "04/05/2025",
        "31 February 2025",
        "You may go, and I march on.",
        "room 2024 is free",
        "at 25:00",
        "99:99",
        "version 3.14",
        "",
        "May we?",
        "12345-67-89",
    ],
)
def test_what_is_no_date_or_could_be_two_is_left_alone(text: str) -> None:
    assert iso(text) == []


def test_several_dates_come_in_order_with_their_places() -> None:
    text = "Ada lived in Paris from 2015 to 2019 and moved on 3 March 2020."
    found = find_dates(text, NOW)
    assert [text[mention.start : mention.end] for mention in found] == ["2015", "2019", "3 March 2020"]


def test_a_period_ends_where_the_next_begins() -> None:
    ends = {
        mention.iso: mention.until for mention in find_dates("in 2019, 2025-12, Q4 2025, 2025-12-31 and next week", NOW)
    }
    assert ends["2019"] == datetime(2020, 1, 1, tzinfo=UTC)
    assert ends["2025-12"] == ends["2025-Q4"] == ends["2025-12-31"] == datetime(2026, 1, 1, tzinfo=UTC)
    assert ends["2025-W12"] == datetime(2025, 3, 24, tzinfo=UTC)


def test_the_reference_day_is_the_one_in_utc() -> None:
    late = datetime(2025, 3, 12, 23, 0, tzinfo=timezone(timedelta(hours=-5)))
    assert find_dates("today", late)[0].iso == "2025-03-13"


@given(
    st.text(alphabet=st.sampled_from("0123456789-/:. TZabcdeMarchMayFridnextlast,in ")),
    st.integers(min_value=0, max_value=7_000_000_000),
)
def test_no_text_breaks_the_resolver(text: str, seconds: int) -> None:
    for mention in find_dates(text, datetime.fromtimestamp(seconds, UTC)):
        assert mention.at.tzinfo is UTC
        assert mention.at < mention.until
        assert 0 <= mention.start < mention.end <= len(text)
