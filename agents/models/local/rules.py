"""Facts by rules over a dependency parse: plain clauses with named ends, and nothing that is only wished, asked or supposed.

A rule is a row: the words that carry it, where its object stands, what the ends must be. Three shapes cover most of it: a verb with an object
or a preposition ("works at"), a copula with a noun or adjective ("is the CTO of", "is due on"), and a noun with an owner ("Ada's manager is Bob").
What no row fits gives no fact; the sentence edges of reader.py still say that the names belong together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from agents.models.local.dates import DateMention
from agents.models.local.grammar import (
    OLD_ROLE,
    conjuncts_of,
    is_hedged,
    is_role,
    negation,
    noun_phrase,
    objects_of,
    subjects_of,
    used_to,
    word_set,
)
from agents.models.local.mentions import Mention, Names, retype
from agents.models.local.when import SentenceDates

if TYPE_CHECKING:
    from spacy.tokens import Span, Token


@dataclass(frozen=True, slots=True)
class Clause:
    """A fact as read, before it becomes a record."""

    subject: Mention
    relation: str
    object: Mention
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    ends: bool = False


@dataclass(frozen=True, slots=True)
class VerbRule:
    """`verbs`: lemmas. `by`: where the object stands: "dobj", or prepositions. `nouns`: the object may be a plain noun ("tea")."""

    relation: str
    verbs: frozenset[str]
    by: tuple[str, ...]
    subject_type: str = ""
    object_type: str = ""
    state: bool = False
    """Holds for a time: in the simple past it is over. Other verbs tell an event that begins a state."""
    ends: bool = False
    nouns: bool = False
    passive: bool = False
    """Only in the passive: "is married to"."""
    needs: tuple[str, ...] = ()
    """Types the object must have; () = any. Keeps "left the room" from ending a job."""


_ORG = ("organization", "other", "product", "person")
"""What the small model calls companies: it is wrong about invented names as often as right."""

VERB_RULES = (
    VerbRule(
        "works_at",
        word_set("work"),
        ("at", "for"),
        "person",
        "organization",
        state=True,
    ),
    VerbRule("works_at", word_set("join"), ("dobj",), "person", "organization", needs=_ORG),
    VerbRule("works_at", word_set("employ hire"), ("by", "at"), "person", "organization", passive=True, needs=_ORG),
    VerbRule("works_at", word_set("leave quit"), ("dobj",), "person", "organization", ends=True, needs=_ORG),
    VerbRule("works_at", word_set("resign retire"), ("from",), "person", "organization", ends=True, needs=_ORG),
    VerbRule("lives_in", word_set("live reside"), ("in",), "person", "place", state=True),
    VerbRule("lives_in", word_set("move relocate"), ("to",), "person", "place"),
    VerbRule("lives_in", word_set("move relocate"), ("from",), "person", "place", ends=True),
    VerbRule(
        "located_in", word_set("locate situate headquarter base"), ("in", "at"), "", "place", state=True, passive=True
    ),
    VerbRule("owns", word_set("own"), ("dobj",), state=True, nouns=True),
    VerbRule("manages", word_set("manage lead head oversee"), ("dobj",), "person", state=True, nouns=True),
    VerbRule("reports_to", word_set("report"), ("to",), "person", "person", state=True),
    VerbRule("founded", word_set("found cofound establish"), ("dobj",), "", "organization"),
    VerbRule("acquired", word_set("acquire buy purchase"), ("dobj",), "", "organization", needs=_ORG),
    VerbRule("uses", word_set("use adopt"), ("dobj",), state=True, nouns=True),
    VerbRule("depends_on", word_set("depend rely"), ("on", "upon"), state=True, nouns=True),
    VerbRule("works_on", word_set("work"), ("on",), "person", "", state=True, nouns=True),
    VerbRule(
        "met_with",
        word_set("meet"),
        ("dobj", "with"),
        "person",
        "person",
        needs=("person", "other", "organization", "product"),
    ),
    VerbRule("attends", word_set("attend"), ("dobj",), "person", "event", nouns=True),
    VerbRule("travels_to", word_set("travel fly go drive"), ("to",), "person", "place", needs=("place", "other")),
    VerbRule("married_to", word_set("marry"), ("dobj",), "person", "person"),
    VerbRule("married_to", word_set("marry"), ("to",), "person", "person", passive=True),
    VerbRule("likes", word_set("like love enjoy prefer"), ("dobj",), "person", "", state=True, nouns=True),
)

_ROLE_VERBS = word_set("promote appoint name hire")
_KIN = word_set(
    "sister brother mother father son daughter cousin aunt uncle mom dad grandmother grandfather niece nephew"
)
_SPOUSE = word_set("wife husband spouse")
_BOSS = word_set("manager boss supervisor")
_SCHEDULING = word_set("schedule reschedule move postpone plan set")


def clauses_in(sentence: Span, names: Names, reference: datetime) -> list[Clause]:
    """Facts of one sentence. A question states nothing."""
    if sentence.text.rstrip().endswith("?"):
        return []
    reader = _Reader(sentence, names, reference)
    found: dict[tuple[str, str, str, bool], Clause] = {}
    for clause in reader.read():
        found.setdefault((clause.subject.name, clause.relation, clause.object.name, clause.ends), _typed(clause, names))
    return list(found.values())


def _typed(clause: Clause, names: Names) -> Clause:
    for end in (clause.subject, clause.object):
        retype(names, end.name, end.type)
    return clause


class _Reader:
    """One sentence under the rules."""

    def __init__(self, sentence: Span, names: Names, reference: datetime) -> None:
        self._sentence, self._names = sentence, names
        self._dates = SentenceDates(sentence, reference)

    def read(self) -> Iterator[Clause]:
        for token in self._sentence:
            if token.dep_ == "appos":
                yield from self._apposition(token)
            if token.pos_ not in ("VERB", "AUX") or is_hedged(token):
                continue
            if token.lemma_ in ("be", "get"):
                yield from self._copula(token)
            elif token.lemma_ == "become":
                yield from self._becomes(token)
            else:
                yield from self._verb(token)

    # Verbs

    def _verb(self, verb: Token) -> Iterator[Clause]:
        negated, over = negation(verb)
        if negated and not over:
            return
        passive = any(child.dep_ in ("auxpass", "nsubjpass") for child in verb.children)
        if passive and not over:
            yield from self._when(verb)
            yield from self._appointed(verb)
        for rule in VERB_RULES:
            if verb.lemma_.lower() not in rule.verbs or (rule.state and _is_reported_past(verb)):
                continue
            for subject, thing in self._ends(verb, rule, passive):
                if subject.name.casefold() != thing.name.casefold() and (subject.named or thing.named):
                    yield self._clause(verb, rule, subject, thing, over)

    def _ends(self, verb: Token, rule: VerbRule, passive: bool) -> Iterator[tuple[Mention, Mention]]:
        if passive and not rule.passive and "dobj" in rule.by:
            # "Globex was acquired by Acme": the agent is the subject.
            subjects = self._people_of(objects_of(verb, ("by",)), rule.subject_type)
            objects = self._things(subjects_of(verb), rule)
        elif passive == rule.passive:
            subjects = self._people_of(subjects_of(verb), rule.subject_type, nouns=not rule.subject_type)
            objects = self._things(objects_of(verb, rule.by), rule)
        else:
            return
        for subject in subjects:
            for thing in objects:
                yield subject, thing

    def _people_of(self, tokens: Iterable[Token], type: str, *, nouns: bool = False) -> list[Mention]:
        found = []
        for token in tokens:
            mention = self._named(token, nouns=nouns)
            if mention is not None:
                found.append(replace(mention, type=type or mention.type))
        return found

    def _things(self, tokens: Iterable[Token], rule: VerbRule) -> list[Mention]:
        found = []
        for token in tokens:
            mention = self._named(token, nouns=rule.nouns)
            if mention is None or (rule.needs and mention.type not in rule.needs):
                continue
            if rule.relation == "lives_in" and mention.type == "person":
                mention = replace(mention, type="place")
            found.append(replace(mention, type=rule.object_type or mention.type))
        return found

    def _named(self, token: Token, *, nouns: bool, after: tuple[str, ...] = ()) -> Mention | None:
        mention = self._names.of(token)
        if mention is None and token.pos_ in ("NOUN", "PROPN"):
            # "her sister Tom Brown", "engineer Ada": the name stands beside the noun.
            beside = [child for child in token.children if child.dep_ == "appos" and child.i in self._names.by_token]
            mention = self._names.of(beside[0]) if beside else None
        if mention is None and nouns and token.pos_ in ("NOUN", "PROPN"):
            return noun_phrase(token, after=after)
        return mention

    def _clause(self, verb: Token, rule: VerbRule, subject: Mention, thing: Mention, over: bool) -> Clause:
        valid_at, invalid_at = self._dates.interval(verb)
        ends = rule.ends or over or used_to(verb)
        if ends:
            return Clause(subject, rule.relation, thing, None, invalid_at or valid_at, ends=True)
        simple_past = verb.tag_ == "VBD" and not any(
            child.lemma_ == "have" and child.dep_ == "aux" for child in verb.children
        )
        if rule.state and simple_past and invalid_at is None:
            plain = self._dates.within(verb)
            if plain is None:
                # "Ada worked at Acme": over, at a time nobody told.
                return Clause(subject, rule.relation, thing, None, None, ends=True)
            invalid_at = plain.until
        return Clause(subject, rule.relation, thing, valid_at, invalid_at)

    # "is", "becomes", "was promoted to"

    def _copula(self, verb: Token) -> Iterator[Clause]:
        negated, over = negation(verb)
        if negated and not over:
            return
        ends = over or used_to(verb)
        if not over:
            yield from self._when(verb)
        for attribute in (child for child in verb.children if child.dep_ in ("attr", "acomp", "prep")):
            if attribute.dep_ == "acomp":
                yield from self._adjective(verb, attribute, ends)
            elif attribute.dep_ == "attr":
                yield from self._is_noun(verb, attribute, ends)

    def _adjective(self, verb: Token, adjective: Token, ends: bool) -> Iterator[Clause]:
        relation = {
            "allergic": "allergic_to",
            "married": "married_to",
            "dependent": "depends_on",
            "based": "located_in",
        }.get(adjective.lower_)
        if relation is None:
            return
        valid_at, invalid_at = self._dates.interval(verb)
        preps = ("on",) if relation == "depends_on" else ("in",) if relation == "located_in" else ("to",)
        for subject in self._people_of(subjects_of(verb), "" if relation in ("depends_on", "located_in") else "person"):
            for token in objects_of(adjective, preps):
                thing = self._named(token, nouns=relation != "married_to")
                if thing is None or thing.name.casefold() == subject.name.casefold():
                    continue
                relation = "lives_in" if relation == "located_in" and subject.type == "person" else relation
                kind = {"married_to": "person", "located_in": "place", "lives_in": "place"}.get(relation, thing.type)
                begin = None if ends else valid_at
                yield Clause(subject, relation, replace(thing, type=kind), begin, invalid_at, ends)

    def _is_noun(self, verb: Token, noun: Token, ends: bool) -> Iterator[Clause]:
        subjects = list(subjects_of(verb))
        # "Ada's manager is Bob" and "Bob is Ada's manager" say the same.
        for owned, other in [(noun, subject) for subject in subjects] + [(subject, noun) for subject in subjects]:
            yield from self._kin(owned, other)
        if noun.i in self._names.by_token and not is_role(noun):
            return
        valid_at, invalid_at = self._dates.interval(verb)
        simple_past = verb.tag_ == "VBD"
        for token in conjuncts_of(noun):
            for subject in self._people_of(subjects, "person"):
                if is_role(token):
                    if simple_past and invalid_at is None:
                        ends = True
                    yield from self._role(subject, token, None if ends else valid_at, invalid_at, ends)

    def _becomes(self, verb: Token) -> Iterator[Clause]:
        if negation(verb)[0]:
            return
        valid_at, invalid_at = self._dates.interval(verb)
        for noun in (child for child in verb.children if child.dep_ in ("attr", "dobj", "oprd")):
            for subject in self._people_of(subjects_of(verb), "person"):
                if is_role(noun):
                    yield from self._role(subject, noun, valid_at, invalid_at, False)

    def _appointed(self, verb: Token) -> Iterator[Clause]:
        if verb.lemma_.lower() not in _ROLE_VERBS:
            return
        valid_at, invalid_at = self._dates.interval(verb)
        roles = [child for child in verb.children if child.dep_ in ("oprd", "attr", "dobj")]
        roles += list(objects_of(verb, ("to", "as")))
        for subject in self._people_of(subjects_of(verb), "person"):
            for noun in roles:
                if is_role(noun):
                    yield from self._role(subject, noun, valid_at, invalid_at, False)

    def _role(
        self, subject: Mention, noun: Token, valid_at: datetime | None, invalid_at: datetime | None, ends: bool
    ) -> Iterator[Clause]:
        ends = ends or any(child.lower_ in OLD_ROLE for child in noun.children)
        role = noun_phrase(noun, "role", after=("of",), stop=lambda token: self._names.of(token) is not None)
        if role is not None:
            yield Clause(subject, "has_role", role, valid_at, invalid_at, ends)
        # "head of sales at Acme": the parser hangs the place on the role, on what it is of, or on the verb.
        inner = [*objects_of(noun, ("of", "for"))]
        heads = [noun, *inner, *([noun.head] if noun.head.pos_ in ("VERB", "AUX") else [])]
        places = [*inner, *(place for head in heads for place in objects_of(head, ("at",)))]
        for place in places:
            employer = self._names.of(place)
            if employer is not None and employer.type in _ORG and employer.name != subject.name:
                yield Clause(subject, "works_at", replace(employer, type="organization"), valid_at, invalid_at, ends)

    # Owners and appositions

    def _apposition(self, noun: Token) -> Iterator[Clause]:
        """ "Grace, CTO of Acme, …" and "my sister Grace"."""
        if is_hedged(noun.head):
            return
        yield from self._kin(noun.head, noun)
        yield from self._kin(noun, noun.head)
        subject = self._names.of(noun.head)
        if subject is not None and subject.type in ("person", "other", "organization", "product") and is_role(noun):
            yield from self._role(replace(subject, type="person"), noun, None, None, False)

    def _kin(self, owned: Token, other: Token) -> Iterator[Clause]:
        word = owned.lemma_.lower()
        relation = (
            "family_of" if word in _KIN else "married_to" if word in _SPOUSE else "reports_to" if word in _BOSS else ""
        )
        if not relation:
            return
        for owner_token in (child for child in owned.children if child.dep_ == "poss"):
            owner = self._names.of(owner_token)
            for token in conjuncts_of(other):
                person = self._names.of(token)
                if owner is not None and person is not None and owner.name.casefold() != person.name.casefold():
                    yield Clause(replace(owner, type="person"), relation, replace(person, type="person"))

    # When

    def _when(self, verb: Token) -> Iterator[Clause]:
        """ "The review is on Friday", "is scheduled for", "was moved to", "is due by"."""
        things = [token for token in subjects_of(verb) if not self._is_person(token)]
        due = any(child.lower_ == "due" for child in verb.children) or any(
            token.lemma_ == "deadline" for token in things
        )
        moved = verb.lemma_.lower() in _SCHEDULING
        if not (due or moved or self._is_at(verb)):
            return
        dates = self._dates.of(verb, ahead=moved or verb.tag_ != "VBD")
        for token in things if dates else ():
            thing = (
                self._deadline_of(token)
                if token.lemma_ == "deadline"
                else self._named(token, nouns=True, after=("with", "about", "of"))
            )
            if thing is None:
                continue
            if due:
                yield Clause(thing, "due_on", _date_entity(dates[-1]))
            else:
                yield Clause(replace(thing, type="event"), "scheduled", _date_entity(dates[-1]))

    def _is_at(self, verb: Token) -> bool:
        """ "… is on Friday": nothing but dates after the verb."""
        if verb.lemma_ != "be":
            return False
        return all(
            self._dates.holds(child)
            or (child.dep_ == "prep" and any(self._dates.holds(inner) for inner in child.children))
            for child in verb.children
            if child.dep_ in ("attr", "acomp", "prep", "npadvmod")
        )

    def _deadline_of(self, token: Token) -> Mention | None:
        for thing in objects_of(token, ("for", "of")):
            return self._named(thing, nouns=True)
        return None

    def _is_person(self, token: Token) -> bool:
        mention = self._names.of(token)
        return mention is not None and mention.type == "person" and token.pos_ != "NOUN"


def _is_reported_past(verb: Token) -> bool:
    """ "Tom said that he lived in Rome": he may live there still, English only shifts the tense."""
    return verb.tag_ == "VBD" and verb.dep_ == "ccomp" and verb.head.tag_ in ("VBD", "VBN")


def _date_entity(date: DateMention) -> Mention:
    return Mention(date.iso, "date", -1, -1, named=False)
