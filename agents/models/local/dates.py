"""Dates in English prose, counted from a reference time; own code, since libraries for it read the machine's clock or guess too freely.

A date keeps its grain (year, quarter, month, week, day, minute): `at` is the first instant it covers, `until` the first after it, `iso` its text with
no more exactness than was said. All in UTC. A weekday or month without a year is the next one, or the last one where the sentence speaks of
the past. "Next Friday" is the Friday of next week, "last Friday" the most recent one before today. 04/05/2025 could be two days, so it is none.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

Grain = Literal["year", "quarter", "month", "week", "day", "minute"]


@dataclass(frozen=True, slots=True)
class DateMention:
    """One date expression; `start` and `end` are character offsets into the text searched."""

    start: int
    end: int
    at: datetime
    grain: Grain

    @property
    def until(self) -> datetime:
        """The first instant after the period; half-open."""
        return _after(self.at, self.grain)

    @property
    def iso(self) -> str:
        """2025, 2025-Q3, 2025-03, 2025-W10, 2025-03-04 or 2025-03-04T15:00Z."""
        year, week, _ = self.at.isocalendar()
        return {
            "year": f"{self.at:%Y}",
            "quarter": f"{self.at:%Y}-Q{(self.at.month + 2) // 3}",
            "month": f"{self.at:%Y-%m}",
            "week": f"{year}-W{week:02d}",
            "day": f"{self.at:%Y-%m-%d}",
            "minute": f"{self.at:%Y-%m-%dT%H:%MZ}",
        }[self.grain]


@dataclass(frozen=True, slots=True)
class _Now:
    at: datetime
    past: bool

    @property
    def day(self) -> datetime:
        return self.at.replace(hour=0, minute=0, second=0, microsecond=0)


_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name} | {
    name.lower(): number for number, name in enumerate(calendar.month_abbr) if name
}
_MONTHS["sept"] = 9
_DAYS = {name.lower(): number for number, name in enumerate(calendar.day_name)}
_DAYS |= {"mon": 0, "tue": 1, "tues": 1, "wed": 2, "thu": 3, "thur": 3, "thurs": 3, "fri": 4}
_COUNTS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "a couple of": 2,
    "couple of": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
}
_COUNTS |= {"seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12}
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4}

_MONTH = r"(?P<month>" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + r")\b\.?"
# "may" and "march" are verbs too, "mon" and "wed" are words: without a companion only full, capitalised names count.
_MONTH_ALONE = (
    r"(?P<month>(?-i:January|February|March|April|May|June|July|August|September|October|November|December))\b"
)
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)\b"
_WEEKDAY = r"(?P<weekday>" + "|".join(sorted(_DAYS, key=len, reverse=True)) + r")\b"
_WEEKDAY_ALONE = r"(?P<weekday>(?-i:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday))\b"
_COUNT = r"(?P<count>\d{1,3}|" + "|".join(sorted(_COUNTS, key=len, reverse=True)) + r")"
_UNIT = r"(?P<unit>day|week|month|year)s?\b"
_WHICH = r"(?P<which>this|next|last|previous|past|coming)"

_Found = tuple[datetime, Grain] | None


def find_dates(text: str, reference: datetime, *, past: bool = False) -> list[DateMention]:
    """Date expressions in the order of the text, without overlaps; `past` turns dates without a year backwards."""
    now = _Now(reference.astimezone(UTC), past)
    taken: list[tuple[int, int]] = []
    found: list[DateMention] = []
    for pattern, resolve in _FORMS:
        for match in pattern.finditer(text):
            start, end = match.span("core" if "core" in pattern.groupindex else 0)
            if _overlaps(start, end, taken):
                continue
            # Also a date that does not exist takes its place: "31 February 2025" is not February.
            taken.append((start, end))
            try:
                resolved = resolve(match, now)
            except (ValueError, OverflowError):
                continue
            if resolved is not None:
                found.append(DateMention(start, end, *resolved))
    found.sort(key=lambda mention: mention.start)
    return _with_times(text, found, now)


def _overlaps(start: int, end: int, taken: Iterable[tuple[int, int]]) -> bool:
    return any(start < other_end and other_start < end for other_start, other_end in taken)


def _after(at: datetime, grain: Grain) -> datetime:
    if grain == "minute":
        return at + timedelta(minutes=1)
    if grain in ("day", "week"):
        return at + timedelta(days=1 if grain == "day" else 7)
    return _add_months(at, {"month": 1, "quarter": 3, "year": 12}[grain])


def _add_months(at: datetime, months: int) -> datetime:
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    return at.replace(year=year, month=month + 1, day=min(at.day, calendar.monthrange(year, month + 1)[1]))


def _date(year: int, month: int = 1, day: int = 1) -> datetime:
    return datetime(year, month, day, tzinfo=UTC)


def _count(text: str) -> int:
    return int(text) if text.isdigit() else _COUNTS[text.lower()]


def _iso(match: re.Match[str], _: _Now) -> _Found:
    text = match[0]
    if len(text) == 7:
        return _date(int(text[:4]), int(text[5:])), "month"
    at = datetime.fromisoformat(text.replace(" ", "T"))
    at = (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    return at, "day" if len(text) == 10 else "minute"


def _numeric(match: re.Match[str], _: _Now) -> _Found:
    first, second, year = int(match["a"]), int(match["b"]), int(match["year"])
    if match["sep"] == "." or first > 12 or first == second:
        return _date(year, second, first), "day"
    return (_date(year, first, second), "day") if second > 12 else None


def _month_day(match: re.Match[str], now: _Now) -> _Found:
    month, day = _MONTHS[match["month"].lower()], int(match["day"])
    if match["year"]:
        return _date(int(match["year"]), month, day), "day"
    return _nearest(lambda year: _date(year, month, day), now), "day"


def _month_year(match: re.Match[str], _: _Now) -> _Found:
    return _date(int(match["year"]), _MONTHS[match["month"].lower()]), "month"


def _month_alone(match: re.Match[str], now: _Now) -> _Found:
    month = _MONTHS[match["month"].lower()]
    which = (match["which"] or "").lower()
    if which == "this":
        return _date(now.at.year, month), "month"
    if not which and month == now.at.month:
        return _date(now.at.year, month), "month"
    back = now.past if not which else which in ("last", "previous", "past")
    return _nearest(lambda year: _date(year, month), _Now(now.at, back)), "month"


def _nearest(of_year: Callable[[int], datetime], now: _Now) -> datetime:
    this_year = of_year(now.at.year)
    if now.past:
        return this_year if this_year <= now.at else of_year(now.at.year - 1)
    return this_year if this_year >= now.day else of_year(now.at.year + 1)


def _year(match: re.Match[str], _: _Now) -> _Found:
    return _date(int(match["year"])), "year"


def _quarter(match: re.Match[str], now: _Now) -> _Found:
    quarter = int(match["q"]) if match["q"] else _ORDINALS[match["nth"].lower()]
    month = quarter * 3 - 2
    if match["year"]:
        return _date(int(match["year"]), month), "quarter"
    if month == (now.at.month - 1) // 3 * 3 + 1:
        return _date(now.at.year, month), "quarter"
    return _nearest(lambda year: _date(year, month), now), "quarter"


def _named_day(match: re.Match[str], now: _Now) -> _Found:
    shift = {
        "day before yesterday": -2,
        "yesterday": -1,
        "today": 0,
        "tonight": 0,
        "tomorrow": 1,
        "day after tomorrow": 2,
    }
    return now.day + timedelta(days=shift[match["name"].lower()]), "day"


def _weekday(match: re.Match[str], now: _Now) -> _Found:
    wanted = _DAYS[match["weekday"].lower()]
    which = (match["which"] or "").lower()
    monday = now.day - timedelta(days=now.day.weekday())
    if which == "next":
        return monday + timedelta(days=7 + wanted), "day"
    if which in ("last", "previous", "past") or (not which and now.past):
        back = (now.day.weekday() - wanted) % 7
        return now.day - timedelta(days=back if back or not which else 7), "day"
    return now.day + timedelta(days=(wanted - now.day.weekday()) % 7), "day"


def _this_or_next(match: re.Match[str], now: _Now) -> _Found:
    step = {"this": 0, "next": 1, "coming": 1}.get(match["which"].lower(), -1)
    unit = match["unit"].lower()
    if unit == "week":
        return now.day - timedelta(days=now.day.weekday()) + timedelta(days=7 * step), "week"
    if unit == "quarter":
        return _add_months(_date(now.at.year, (now.at.month - 1) // 3 * 3 + 1), 3 * step), "quarter"
    if unit == "month":
        return _add_months(_date(now.at.year, now.at.month), step), "month"
    return _date(now.at.year + step), "year"


def _counted(match: re.Match[str], now: _Now) -> _Found:
    sign = -1 if match["tail"] and match["tail"].lower() == "ago" else 1
    count, unit = sign * _count(match["count"]), match["unit"].lower()
    if unit in ("day", "week"):
        return now.day + timedelta(days=count * (1 if unit == "day" else 7)), "day"
    at = _add_months(now.day, count * (1 if unit == "month" else 12))
    return (_date(at.year, at.month), "month") if unit == "month" else (_date(at.year), "year")


def _edge(match: re.Match[str], now: _Now) -> _Found:
    """End or beginning of a month, year or week: one day."""
    what = re.sub(r"^the\s+(?=(?:week|month|quarter|year)\b)", "this ", match["what"], flags=re.IGNORECASE)
    inner = find_dates(what, now.at, past=now.past)
    if not inner or inner[0].grain in ("day", "minute"):
        return None
    at, grain = inner[0].at, inner[0].grain
    return (_after(at, grain) - timedelta(days=1) if match["edge"].lower() == "end" else at), "day"


def _bare_day(match: re.Match[str], now: _Now) -> _Found:
    day = int(match["day"])
    at = _date(now.at.year, now.at.month, day)
    if now.past:
        return (at if at <= now.at else _date(*_month_before(now), day)), "day"
    return (at if at >= now.day else _add_months(_date(now.at.year, now.at.month), 1).replace(day=day)), "day"


def _month_before(now: _Now) -> tuple[int, int]:
    before = _add_months(_date(now.at.year, now.at.month), -1)
    return before.year, before.month


_Resolve = Callable[[re.Match[str], _Now], _Found]


def _form(pattern: str, resolve: _Resolve) -> tuple[re.Pattern[str], _Resolve]:
    return re.compile(pattern, re.IGNORECASE), resolve


_THIS = re.compile(r"\b" + _WHICH + r"\s+(?P<unit>week|month|quarter|year)\b", re.IGNORECASE)
_LEAD = r"\b(?:in|on|by|since|from|between|until|till|to|through|before|after|during|early|late|mid|of|for|and)[ -]"
"""What must stand before a bare month or year, which else may be a name or a number."""

_FORMS: tuple[tuple[re.Pattern[str], _Resolve], ...] = (
    # The most exact first: a later form never takes what an earlier one took.
    _form(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:?\d\d)?)?(?![\d-])", _iso),
    _form(
        r"\b(?P<edge>end|beginning|start)\s+of\s+(?P<what>(?:the\s+)?(?:(?:next|this|last)\s+)?(?:week|month|quarter|year))\b",
        _edge,
    ),
    _form(
        r"\b(?P<edge>end|beginning|start)\s+(?P<what>of\s+(?:" + _MONTH_ALONE + r"(?:\s+\d{4}\b)?|(?:19|20)\d\d\b))",
        _edge,
    ),
    _form(
        r"\b(?:" + _WEEKDAY + r",?\s+)?" + _MONTH + r"\s+(?:the\s+)?" + _DAY + r"\b(?!:)(?:,?\s+" + _YEAR + ")?",
        _month_day,
    ),
    _form(
        r"\b(?:" + _WEEKDAY + r",?\s+)?(?:the\s+)?" + _DAY + r"\s+(?:of\s+)?" + _MONTH + r"(?:,?\s+" + _YEAR + ")?",
        _month_day,
    ),
    _form(r"\b(?P<a>\d{1,2})(?P<sep>[./])(?P<b>\d{1,2})(?P=sep)" + _YEAR, _numeric),
    _form(r"\b" + _MONTH + r",?\s+(?:of\s+)?" + _YEAR, _month_year),
    _form(r"\b\d{4}-\d\d\b(?!-)", _iso),
    _form(
        r"\b(?:Q(?P<q>[1-4])|(?P<nth>first|second|third|fourth)\s+quarter)\b(?:,?\s+(?:of\s+)?" + _YEAR + ")?", _quarter
    ),
    _form(r"\b(?P<name>day before yesterday|day after tomorrow|yesterday|today|tonight|tomorrow)\b", _named_day),
    _form(r"\b" + _WHICH + r"\s+" + _WEEKDAY, _weekday),
    _form(_THIS.pattern, _this_or_next),
    _form(r"\b" + _COUNT + r"\s+" + _UNIT + r"\s+(?P<tail>ago|from\s+now|from\s+today)\b", _counted),
    _form(r"\bin\s+(?P<core>" + _COUNT + r"\s+" + _UNIT + r")(?P<tail>)", _counted),
    _form(r"\b(?P<which>)" + _WEEKDAY_ALONE, _weekday),
    _form(r"\b" + _WHICH + r"\s+" + _MONTH_ALONE, _month_alone),
    _form(_LEAD + r"(?P<core>(?P<which>)" + _MONTH_ALONE + ")", _month_alone),
    _form(_LEAD + r"(?P<core>" + _YEAR + ")", _year),
    _form(r"\b(?:on|by|until|till)\s+(?P<core>the\s+(?P<day>\d{1,2})(?:st|nd|rd|th))\b", _bare_day),
)

_CLOCK = re.compile(
    r"\b(?:at\s+)?(?:(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap])\.?m\b\.?"
    r"|(?P<hour24>\d{1,2}):(?P<minute24>\d\d)(?:\s*(?:UTC|GMT))?|(?P<name>noon|midnight)\b)",
    re.IGNORECASE,
)

_BETWEEN_DATE_AND_TIME = re.compile(r"(?:\s|,|\bat\b|\bon\b|@)*", re.IGNORECASE)


def _with_times(text: str, dates: list[DateMention], now: _Now) -> list[DateMention]:
    """Clock times joined to the day next to them; a time without a day is one of the reference day."""
    joined = list(dates)
    for match in _CLOCK.finditer(text):
        if _overlaps(match.start(), match.end(), ((day.start, day.end) for day in joined)):
            continue
        time = _clock(match)
        if time is None:
            continue
        beside = next((day for day in joined if day.grain == "day" and _touch(text, day, match)), None)
        if beside is None:
            joined.append(DateMention(match.start(), match.end(), now.day + time, "minute"))
        else:
            start, end = min(beside.start, match.start()), max(beside.end, match.end())
            joined[joined.index(beside)] = DateMention(start, end, beside.at + time, "minute")
    return sorted(joined, key=lambda mention: mention.start)


def _touch(text: str, day: DateMention, clock: re.Match[str]) -> bool:
    gap = text[day.end : clock.start()] if day.end <= clock.start() else text[clock.end() : day.start]
    return _BETWEEN_DATE_AND_TIME.fullmatch(gap) is not None


def _clock(match: re.Match[str]) -> timedelta | None:
    if match["name"]:
        return timedelta(hours=12 if match["name"].lower() == "noon" else 0)
    if match["hour24"]:
        hour, minute = int(match["hour24"]), int(match["minute24"])
    else:
        hour, minute = int(match["hour"]), int(match["minute"] or 0)
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if match["half"].lower() == "p" else 0)
    return timedelta(hours=hour, minutes=minute) if hour < 24 and minute < 60 else None
