"""Found things as lines for people: the fact, when it is true, who said so when and where, and the words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from strandline.api.models import FoundFact, Hit, SearchPage, SourceText
from strandline.cli.output import day, one_line, shortened

QUOTE_CHARS = 160
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_WORD = re.compile(r"\w+")


def answer_lines(answer: SearchPage, query: str) -> Iterator[str]:
    """Numbered hits, the best first; a fact that stood in an earlier hit is not repeated."""
    shown: set[object] = set()
    number = 0
    for hit in answer.hits:
        lines = list(_hit_lines(hit, query, shown))
        if lines:
            number += 1
            yield f"{number}. {lines[0]}"
            yield from (f"   {line}" for line in lines[1:])
    if not number:
        yield f"Nothing found that was true at {day(answer.as_of)}."


def _hit_lines(hit: Hit, query: str, shown: set[object]) -> Iterator[str]:
    sources = {source.artifact_id: source for source in hit.sources}
    for fact in hit.facts:
        if fact.id in shown:
            continue
        shown.add(fact.id)
        yield f"{fact_sentence(fact)}  [{validity(fact)}]"
        for source_id in fact.source_ids[-1:]:  # the newest text says it best
            if source_id in sources:
                shown.add(source_id)
                yield from _source_lines(sources[source_id], f"{fact.subject} {fact.object} {query}")
    for source in hit.sources:
        if hit.kind == "text" and source.artifact_id not in shown:
            shown.add(source.artifact_id)
            yield from reversed(list(_source_lines(source, query)))


def fact_sentence(fact: FoundFact) -> str:
    """The fact as a sentence: its description, else its parts."""
    return one_line(fact.description or f"{fact.subject} {fact.relation.replace('_', ' ')} {fact.object}")


def validity(fact: FoundFact) -> str:
    """When it is true: "since …", and "until …" where an end is known."""
    end = fact.invalid_at or fact.stated_invalid_at
    return f"since {day(fact.valid_at)}" + (f", until {day(end)}" if end is not None else "")


def _source_lines(source: SourceText, words: str) -> Iterator[str]:
    who = one_line(source.author) or "unknown author"
    title = f' in "{shortened(source.title, 80)}"' if source.title else ""
    url = f"  {one_line(source.url)}" if source.url else ""
    yield f"{who}, {day(source.valid_at)}{title} ({source.source_type}){url}"
    yield f"“{quote(source.text, words)}”"


def quote(text: str, words: str) -> str:
    """The sentence of the text that has the most of the words, shortened."""
    wanted = {word.casefold() for word in _WORD.findall(words) if len(word) > 2}
    sentences = [found.group().strip() for found in _SENTENCE.finditer(text)]
    best = max(
        sentences,
        key=lambda sentence: len(wanted & {word.casefold() for word in _WORD.findall(sentence)}),
        default=text,
    )
    return shortened(best, QUOTE_CHARS)
