"""What the rules ask of a dependency parse: who acts on what, what is negated or only supposed, what a plain noun is called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from agents.models.answer import name_of
from agents.models.local.mentions import NO_NAME, Mention

if TYPE_CHECKING:
    from spacy.tokens import Token


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_HEDGE_AUX = word_set("may might could would should can")
_HEDGE_VERBS = word_set(
    "want hope plan wish consider try intend expect think doubt wonder ask decide need hate refuse fail suggest propose"
)
_HEDGE_FORMS = word_set("hopes hoped hoping")
"""The small model takes these for "to hop"."""

_HEDGE_MARKS = word_set("if unless whether")


def is_hedged(verb: Token) -> bool:
    """Under a maybe, an if, a wish or a question: on the verb itself or on any verb above it."""
    below = verb
    for token in (verb, *verb.ancestors):
        if token.pos_ not in ("VERB", "AUX"):
            continue
        if any(child.dep_ == "aux" and child.lower_ in _HEDGE_AUX for child in token.children):
            return True
        if (
            token != verb
            and (token.lemma_.lower() in _HEDGE_VERBS or token.lower_ in _HEDGE_FORMS)
            and below.dep_ in ("xcomp", "ccomp", "advcl", "pcomp")
        ):
            return True
        if any(child.dep_ in ("mark", "advmod") and child.lower_ in _HEDGE_MARKS for child in token.children) and (
            token == verb or below.dep_ in ("xcomp", "ccomp", "conj")
        ):
            return True
        if token == verb and any(_is_condition(child) for child in token.children):
            return True
        if any(
            child.dep_ == "advmod" and child.lower_ in ("maybe", "perhaps", "probably", "possibly")
            for child in token.children
        ):
            return True
        below = token
    return False


def _is_condition(clause: Token) -> bool:
    """ "If Acme buys Globex, …": what hangs on it is supposed only."""
    return clause.dep_ == "advcl" and any(
        child.dep_ == "mark" and child.lower_ in _HEDGE_MARKS for child in clause.children
    )


def negation(verb: Token) -> tuple[bool, bool]:
    """(negated, "no longer" or "not … anymore")."""
    words = {token.lower_ for token in verb.subtree if token.head == verb or token.head.head == verb}
    no_longer = ("no" in words and "longer" in words) or (
        any(child.dep_ == "neg" for child in verb.children) and bool(words & {"anymore", "longer"})
    )
    negated = any(child.dep_ == "neg" or child.lower_ == "never" for child in verb.children)
    return negated or no_longer, no_longer


def used_to(verb: Token) -> bool:
    return verb.dep_ == "xcomp" and verb.head.lower_ == "used" and verb.tag_ == "VB"


def subjects_of(verb: Token) -> Iterator[Token]:
    """The verb's subjects; a verb without one ("and works at Acme", "used to live") borrows that of the verb it hangs on."""
    own = [child for child in verb.children if child.dep_ in ("nsubj", "nsubjpass")]
    if not own and verb.dep_ in ("conj", "xcomp") and verb.head.pos_ in ("VERB", "AUX"):
        yield from subjects_of(verb.head)
    elif not own and verb.dep_ == "relcl":
        yield verb.head
    for token in own:
        if token.lower_ in ("who", "which", "that") and verb.dep_ == "relcl":
            yield verb.head
        else:
            yield from conjuncts_of(token)


def objects_of(head: Token, by: tuple[str, ...]) -> Iterator[Token]:
    """Direct objects ("dobj") or the objects of the prepositions named."""
    for child in head.children:
        if "dobj" in by and child.dep_ == "dobj":
            yield from conjuncts_of(child)
        elif child.dep_ in ("prep", "agent") and child.lower_ in by:
            for inner in child.children:
                if inner.dep_ in ("pobj", "pcomp"):
                    yield from conjuncts_of(inner)
            # "work at and for", "moved from Paris to Rome": the parser may hang one preposition below the other.
            for inner in child.children:
                if inner.dep_ == "prep" and inner.lower_ in by:
                    yield from (token for token in inner.children if token.dep_ == "pobj")
        elif child.dep_ == "prep" and child.lower_ == "from" and "to" in by:
            yield from objects_of(child, ("to",))


def conjuncts_of(token: Token) -> Iterator[Token]:
    yield token
    for child in token.children:
        if child.dep_ == "conj":
            yield from conjuncts_of(child)


_ROLE_WORDS = word_set(
    "engineer manager director developer designer analyst consultant scientist researcher teacher doctor nurse lawyer accountant assistant "
    "president officer chief head lead founder cofounder co-founder chairman chairwoman chair ceo cto cfo coo vp architect administrator "
    "editor writer journalist professor student intern partner owner coordinator specialist representative recruiter secretary treasurer "
    "programmer technician producer supervisor strategist advisor adviser maintainer chef pilot artist photographer mechanic electrician"
)


def is_role(noun: Token) -> bool:
    return noun.lemma_.lower() in _ROLE_WORDS or noun.lower_ in _ROLE_WORDS


_NAME_PARTS = ("compound", "amod", "nmod")


_EMPTY = word_set("one thing things lot people time way rest team everyone someone")
_POINTING = word_set("same other such different following own")
_GENERIC = word_set("meeting call sync chat appointment event deadline lunch dinner review release task report")
"""Nouns that name something else in every text: they need a word beside them that says which."""

OLD_ROLE = word_set("former ex previous past")
_NEW_ROLE = word_set("new current interim our")


def noun_phrase(
    noun: Token,
    type: str = "other",
    *,
    after: tuple[str, ...] = (),
    stop: Callable[[Token], bool] = lambda _: False,
) -> Mention | None:
    """A plain noun with what makes it a name: "budget report", "Acme's office", "head of sales" (prepositions in `after`).

    None if it only points ("it", "one"), belongs to a pronoun ("our team"), or is too general to be the same thing in the next text.
    """
    owners = [child for child in noun.children if child.dep_ == "poss"]
    if noun.lower_ in _EMPTY or any(
        type != "role" and owner.pos_ == "PRON" and owner.lower_ in ("our", "their", "your") for owner in owners
    ):
        return None
    if any(child.lower_ in _POINTING for child in noun.children):
        return None
    left = [
        child
        for child in noun.children
        if child.dep_ in _NAME_PARTS and child.i < noun.i and child.lower_ not in _NEW_ROLE | OLD_ROLE
    ]
    left += [owner for owner in owners if owner.pos_ in ("PROPN", "NOUN")]
    start = min((token.left_edge.i for token in left), default=noun.i)
    end = noun.i + 1
    for prep in (child for child in noun.children if child.dep_ == "prep" and child.lower_ in after):
        for inner in prep.children:
            if inner.dep_ == "pobj" and not stop(inner):
                end = max(end, inner.i + 1)
    name = name_of(noun.doc[start:end].text)
    if not name or name.lower() in _GENERIC or NO_NAME.search(name):
        return None
    return Mention(name.removeprefix("the ").removeprefix("The "), type, start, end, named=False)


def clause_of(token: Token) -> Token:
    while token.pos_ not in ("VERB", "AUX") or token.dep_ in ("aux", "auxpass", "amod", "compound"):
        if token.head == token:
            break
        token = token.head
    return token
