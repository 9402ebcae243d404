"""A parsed text as an Extraction: names, rule facts, and one untyped edge for each pair of names that share a sentence. Runs in the worker process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from agents.models.answer import type_key
from agents.models.base import Extraction, Passage, Usage
from agents.models.local.mentions import Mention, Names, find_names
from agents.models.local.rules import Clause, clauses_in
from graph.relations import SENTENCE_RELATION
from topics.records import EntityMention, FactStatement

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Span

BLOCK_CHARS = 20_000
"""Parsed at once; a longer text is cut at a line or sentence end, since memory grows with it."""

SENTENCE_CHARS = 1_000
"""A "sentence" longer than that is a table, a log or a list: its names are kept, pairs of them mean nothing."""

_PARAGRAPHS = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*•>#|]|\d+[.)])\s)")
"""Empty lines, and the starts of list items, headings, quotes and table rows."""

_FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)

PAIRS = 10
"""Edges a sentence may give; a list of twenty names would give 190."""


def read(nlp: Language, passage: Passage, model_id: str) -> Extraction:
    """Blocking: about 10 ms for a short text, 50 ms for a dense one of 100 words. The same passage always gives the same Extraction."""
    entities: dict[str, EntityMention] = {}
    statements: list[FactStatement] = []
    for doc in nlp.pipe(_blocks(passage.text), batch_size=32):
        names = find_names(doc, passage.author, type_key(passage.author_type))
        facts = [(sentence, clauses_in(sentence, names, passage.reference_time)) for sentence in doc.sents]
        for mention in names.all():
            _add(entities, mention)
        for sentence, clauses in facts:
            for clause in clauses:
                _add(entities, clause.subject)
                _add(entities, clause.object)
            statements += [_statement(clause, sentence) for clause in clauses]
            statements += _edges(sentence, names, clauses)
    typed = [_with_types(statement, entities) for statement in statements]
    return Extraction(tuple(entities.values()), tuple(dict.fromkeys(typed)), model_id, Usage(calls=0))


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs: no sentence runs over an empty line, though the parser would think so. Fenced code is not prose."""
    for paragraph in _PARAGRAPHS.split(_FENCED.sub("\n\n", text)):
        start = 0
        while start < len(paragraph):
            end = start + BLOCK_CHARS
            if end < len(paragraph):
                cut = max(paragraph.rfind("\n", start, end), paragraph.rfind(". ", start, end) + 1)
                end = cut if cut > start else end
            if any(char.isalpha() for char in paragraph[start:end]):
                yield paragraph[start:end]
            start = end


def _add(entities: dict[str, EntityMention], mention: Mention) -> None:
    key = mention.name.casefold()
    known = entities.get(key)
    if known is None or known.type == "other":
        entities[key] = EntityMention(name=known.name if known else mention.name, type=mention.type)


def _statement(clause: Clause, sentence: Span) -> FactStatement:
    return FactStatement(
        subject=clause.subject.name,
        relation=clause.relation,
        object=clause.object.name,
        description=_words_of(sentence),
        valid_at=clause.valid_at,
        invalid_at=clause.invalid_at,
        ends=clause.ends,
        origin="rules",
    )


def _edges(sentence: Span, names: Names, clauses: list[Clause]) -> list[FactStatement]:
    if len(sentence.text) > SENTENCE_CHARS:
        return []
    linked = {frozenset((clause.subject.name.casefold(), clause.object.name.casefold())) for clause in clauses}
    here = {mention.name.casefold(): mention for mention in names.within(sentence.start, sentence.end)}
    pairs = [pair for pair in combinations(here, 2) if frozenset(pair) not in linked]
    return [
        FactStatement(
            subject=here[left].name,
            relation=SENTENCE_RELATION,
            object=here[right].name,
            description=_words_of(sentence),
            origin="sentence",
        )
        for left, right in pairs[:PAIRS]
    ]


def _words_of(sentence: Span) -> str:
    return " ".join(sentence.text.split())[:SENTENCE_CHARS]


def _with_types(statement: FactStatement, entities: dict[str, EntityMention]) -> FactStatement:
    subject, thing = entities[statement.subject.casefold()], entities[statement.object.casefold()]
    return statement.model_copy(
        update={"subject": subject.name, "subject_type": subject.type, "object": thing.name, "object_type": thing.type}
    )
