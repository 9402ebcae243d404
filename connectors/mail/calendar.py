"""An invitation (iCalendar, RFC 5545) as a few plain lines: what, when, where, who asks. No recurrence is expanded."""

from __future__ import annotations

import re
from dataclasses import dataclass

from connectors.canonical import clean_line

MAX_CALENDAR_CHARS = 2 * 1024 * 1024
_ESCAPES = {"\\n": "\n", "\\N": "\n", "\\,": ",", "\\;": ";", "\\\\": "\\"}
_STAMP = re.compile(r"^(\d{4})(\d{2})(\d{2})(?:T(\d{2})(\d{2})(\d{2})?(Z)?)?$")
_METHODS = {
    "REQUEST": "Invitation",
    "CANCEL": "Cancelled",
    "REPLY": "Answer to an invitation",
    "COUNTER": "Another time proposed",
}


@dataclass(frozen=True, slots=True)
class Invitation:
    """The first event of a calendar object; "" for what it does not say."""

    method: str
    title: str = ""
    starts: str = ""
    ends: str = ""
    organizer: str = ""
    location: str = ""
    description: str = ""

    def as_text(self) -> str:
        """A sentence a line; the times as the organiser wrote them, with their zone."""
        when = " to ".join(part for part in (self.starts, self.ends) if part)
        lines = [
            f"{_METHODS.get(self.method, 'Calendar event')}: {self.title or 'without a title'}",
            f"When: {when}" if when else "",
            f"Where: {self.location}" if self.location else "",
            f"Organiser: {self.organizer}" if self.organizer else "",
            self.description,
        ]
        return "\n".join(line for line in lines if line)


def read_invitation(ics: str, method: str = "") -> Invitation | None:
    """None if it holds no event. `method` is the mail's parameter; the object's own METHOD counts if it is "". Never raises."""
    inside: list[str] = []
    found: dict[str, tuple[str, str]] = {}
    own_method, events = "", 0
    for line in _unfolded(ics[:MAX_CALENDAR_CHARS]):
        name, parameters, value = _property(line)
        if name == "BEGIN":
            inside.append(value.strip().upper())
            events += inside[-1] in ("VEVENT", "VTODO")
        elif name == "END":
            inside = inside[:-1]
        elif name == "METHOD":
            own_method = value.strip().upper()
        elif events == 1 and inside and inside[-1] in ("VEVENT", "VTODO"):
            found.setdefault(name, (parameters, value))
    if not events:
        return None
    return Invitation(
        method=clean_line(method.upper() or own_method, 40),
        title=_line(found, "SUMMARY"),
        starts=_when(*found.get("DTSTART", ("", ""))),
        ends=_when(*(found.get("DTEND") or found.get("DUE") or ("", ""))),
        organizer=_person(*found.get("ORGANIZER", ("", ""))),
        location=_line(found, "LOCATION"),
        description=_unescaped(found.get("DESCRIPTION", ("", ""))[1]).strip()[:20_000],
    )


def _unfolded(ics: str) -> list[str]:
    return re.sub(r"\r?\n[ \t]", "", ics).replace("\r", "\n").split("\n")


def _property(line: str) -> tuple[str, str, str]:
    """Name, parameters, value: the value starts at the first colon outside quotes."""
    quoted = False
    for index, char in enumerate(line):
        if char == '"':
            quoted = not quoted
        elif char == ":" and not quoted:
            name, _, parameters = line[:index].partition(";")
            return name.strip().upper(), parameters, line[index + 1 :]
    return "", "", ""


def _unescaped(value: str) -> str:
    return re.sub(r"\\[nN,;\\]", lambda match: _ESCAPES[match[0]], value)


def _line(found: dict[str, tuple[str, str]], name: str) -> str:
    return clean_line(_unescaped(found.get(name, ("", ""))[1]), 500)


def _parameter(parameters: str, name: str) -> str:
    match = re.search(rf'(?:^|;){name}=(?:"([^"]*)"|([^;:]*))', parameters, re.IGNORECASE)
    return (match[1] or match[2] or "") if match else ""


def _when(parameters: str, value: str) -> str:
    match = _STAMP.match(value.strip())
    if not match:
        return clean_line(value, 40)
    day = f"{match[1]}-{match[2]}-{match[3]}"
    if not match[4]:
        return day
    zone = "UTC" if match[7] else clean_line(_parameter(parameters, "TZID"), 80)
    return f"{day} {match[4]}:{match[5]}{f' ({zone})' if zone else ''}"


def _person(parameters: str, value: str) -> str:
    address = re.sub(r"^mailto:", "", value.strip(), flags=re.IGNORECASE)
    name = _parameter(parameters, "CN")
    return clean_line(f"{name} <{address}>" if name and address else name or address, 300)
