"""Who and what a parsed text names: the model's entities, proper nouns it missed, the speaker, and whom a pronoun means."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agents.models.answer import name_of

if TYPE_CHECKING:
    from spacy.tokens import Doc, Span, Token

TYPES = {
    "PERSON": "person",
    "ORG": "organization",
    "GPE": "place",
    "LOC": "place",
    "FAC": "place",
    "PRODUCT": "product",
    "EVENT": "event",
    "WORK_OF_ART": "document",
    "LAW": "document",
}
"""spaCy's labels (OntoNotes 5) to ours; those that are missing (numbers, dates, nationalities) are no entities."""

_FIRST = frozenset({"i", "me", "my", "mine", "myself"})
_PERSONAL = frozenset({"he", "him", "his", "she", "her", "hers"})
_THING = frozenset({"it", "its"})
_EDGE = re.compile(
    r"^(?:(?:the|a|an|our|my|your|his|her|their|its|this|that|mr|mrs|ms|dr|prof)\b\.?\s+)+|(?:['’]s|['’])$",
    re.IGNORECASE,
)
NO_NAME = re.compile(r"[@<>\[\]{}|=\\#*`]|://")
"""Addresses, links, markup and code."""

_DAY_OR_MONTH = frozenset(name.lower() for name in (*calendar.day_name, *calendar.month_name) if name)


@dataclass(slots=True)
class Mention:
    """A name in the text. `type` may be corrected by the role it plays in a fact."""

    name: str
    type: str
    start: int
    """Token offsets, half-open."""
    end: int
    named: bool = True
    """False for a plain noun ("bakery"): a fact needs a name on at least one side."""


@dataclass(slots=True)
class Names:
    """All mentions of a text, found by token; and who "I" is."""

    author: str
    author_type: str
    by_token: dict[int, Mention] = field(default_factory=dict)

    def add(self, mention: Mention) -> None:
        for index in range(mention.start, mention.end):
            self.by_token[index] = mention

    def all(self) -> Iterator[Mention]:
        seen = -1
        for index in sorted(self.by_token):
            mention = self.by_token[index]
            if mention.start > seen:
                seen = mention.start
                yield mention

    def within(self, start: int, end: int) -> list[Mention]:
        return [mention for mention in self.all() if start <= mention.start < end]

    def of(self, token: Token) -> Mention | None:
        """Whom a token means: its own name, "I", or the last named one that fits a pronoun."""
        own = self.by_token.get(token.i)
        if own is not None:
            return own
        word = token.lower_
        if word in _FIRST:
            return Mention(self.author, self.author_type, token.i, token.i + 1) if self.author else None
        if word in _PERSONAL:
            return self._before(token, people=True)
        if word in _THING:
            return self._before(token, people=False)
        return None

    def _before(self, token: Token, *, people: bool) -> Mention | None:
        """The nearest subject before the token, of a sentence before its own or of an earlier clause; then any name that fits."""
        earlier = [mention for mention in self.all() if mention.end <= token.i and (mention.type == "person") == people]
        subjects = [mention for mention in earlier if _is_subject(token.doc[mention.start : mention.end])]
        return subjects[-1] if subjects else earlier[-1] if earlier else None


def find_names(doc: Doc, author: str, author_type: str) -> Names:
    """Names of a parsed text, longest first where they overlap."""
    names = Names(name_of(author), author_type)
    for span in doc.ents:
        if span.label_ in TYPES:
            _add(names, span, TYPES[span.label_])
    for start, end in _proper_runs(doc, names.by_token):
        _add(names, doc[start:end], "other")
    _settle_types(names)
    return names


def _add(names: Names, span: Span, type: str) -> None:
    while len(span) > 1 and (span[0].pos_ in ("DET", "PRON") or _EDGE.fullmatch(span[0].text + " ")):
        span = span[1:]
    while len(span) > 1 and span[-1].tag_ in ("POS", "IN", ",", "."):
        span = span[:-1]
    name = name_of(_EDGE.sub("", span.text.strip()).rstrip(".,;:!?"))
    if not name or not any(char.isalpha() for char in name) or NO_NAME.search(name):
        return
    if name.lower() in _DAY_OR_MONTH or (
        name.islower() and span.root.pos_ in ("VERB", "AUX", "ADV", "ADP", "PRON", "INTJ")
    ):
        return
    names.add(Mention(name, type, span.start, span.end))


def _proper_runs(doc: Doc, taken: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Runs of proper nouns that the model called no entity: product and project names, mostly."""
    used = set(taken)
    dates = {token.i for span in doc.ents if span.label_ in ("DATE", "TIME", "NORP", "LANGUAGE") for token in span}
    start = None
    for token in doc:
        fits = token.pos_ == "PROPN" and token.i not in used and token.i not in dates and token.text[0].isupper()
        if fits and start is None:
            start = token.i
        if start is not None and not fits:
            yield start, token.i
            start = None
    if start is not None:
        yield start, len(doc)


def _settle_types(names: Names) -> None:
    """One name, one type in a text: the first that is not "other" wins."""
    known: dict[str, str] = {}
    for mention in names.all():
        if mention.type != "other":
            known.setdefault(mention.name.casefold(), mention.type)
    for mention in names.all():
        mention.type = known.get(mention.name.casefold(), mention.type)


def retype(names: Names, name: str, type: str) -> None:
    """A role told the type: the one whom someone works at is an organisation, whatever the model thought."""
    for mention in names.all():
        if mention.name.casefold() == name.casefold():
            mention.type = type


def _is_subject(span: Span) -> bool:
    return span.root.dep_ in ("nsubj", "nsubjpass")
