"""The dates of a sentence, by the clause they belong to: "Ada joined Acme in 2020 and lives in Bern" dates the joining only."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from agents.models.local.dates import DateMention, find_dates
from agents.models.local.grammar import clause_of

if TYPE_CHECKING:
    from spacy.tokens import Span, Token


class SentenceDates:
    """Date expressions of one parsed sentence."""

    def __init__(self, sentence: Span, reference: datetime) -> None:
        self._sentence = sentence
        self._found = find_dates(sentence.text, reference, past=any(token.tag_ == "VBD" for token in sentence))
        self._ahead = find_dates(sentence.text, reference)

    def of(self, verb: Token, *, ahead: bool = False) -> list[DateMention]:
        """Dates of the verb's own clause, in the order of the text; `ahead` reads a bare weekday or month as the next one even after a past tense."""
        return [date for date in (self._ahead if ahead else self._found) if self._clause_at(date) == verb]

    def holds(self, token: Token) -> bool:
        """Whether the token is part of a date."""
        at = token.idx - self._sentence.start_char
        return any(date.start <= at < date.end for date in self._found)

    def interval(self, verb: Token) -> tuple[datetime | None, datetime | None]:
        """(begin, end) of what the verb says; "until 2019" ends with the first instant of 2019, "through 2019" with the last."""
        begin: datetime | None = None
        end: datetime | None = None
        for date in self.of(verb):
            lead = self._lead(date)
            if lead in ("until", "till"):
                end = date.at
            elif lead == "through":
                end = date.until
            elif lead in ("to", "and", "-", "–") and begin is not None:
                end = date.at
            elif lead not in ("by", "before"):
                begin = date.at
        return begin, (None if begin is not None and end is not None and end <= begin else end)

    def within(self, verb: Token) -> DateMention | None:
        """The one date of "lived in Paris in 2019": the state held in it, and no longer."""
        dates = self.of(verb)
        return dates[0] if len(dates) == 1 and self._lead(dates[0]) in ("in", "during") else None

    def _clause_at(self, date: DateMention) -> Token | None:
        base = self._sentence.start_char
        span = self._sentence.doc.char_span(base + date.start, base + date.end, alignment_mode="expand")
        return clause_of(span.root) if span is not None else None

    def _lead(self, date: DateMention) -> str:
        before = self._sentence.text[: date.start].split()
        return before[-1].lower() if before else ""
