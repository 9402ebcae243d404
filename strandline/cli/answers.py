"""Found things as lines for people: the fact, when it is true, who said so when and where, and the words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graph.read.answers import FoundFact, Hit, SearchPage, SourceText
from strandline.cli.output import day, one_line, shortened

QUOTE_CHARS = 160
FACTS_PER_TEXT = 2
"""A text can state dozens of facts; those that have the question's words are shown."""

_SENTENCE = re.compile(r".+?(?:[.!?]+(?=\s|$)|\n|$)")
_WORD = re.compile(r"\w{3,}")
_STEM = 4
"""Letters by which words are compared: "work" is to find "works"."""


def answer_lines(answer: SearchPage, query: str) -> Iterator[str]:
    """Numbered hits, the best first; what stood in an earlier hit is not repeated."""
    shown: set[object] = set()
    number = 0
    for hit in answer.hits:
        if lines := _hit_lines(hit, query, shown):
            number += 1
            yield f"{number}. {lines[0]}"
            yield from (f"   {line}" for line in lines[1:])
    if not number:
        yield f"Nothing found that was true at {day(answer.as_of)}, as known at {day(answer.known_at)}."


def _hit_lines(hit: Hit, query: str, shown: set[object]) -> list[str]:
    facts = _facts_to_show(hit, query, shown)
    source = _source_to_show(hit, facts)
    if not facts and (source is None or source.artifact_id in shown):
        return []
    lines = [f"{fact_sentence(fact)}  [{validity(fact)}]" for fact in facts]
    shown.update(map(fact_sentence, facts))
    if source is not None:
        shown.add(source.artifact_id)
        said = " ".join([query, *map(fact_sentence, facts[:1])])
        lines += [f"“{quote(source.text, said)}”", origin(source)]
    return lines


def _facts_to_show(hit: Hit, query: str, shown: set[object]) -> list[FoundFact]:
    """Those not shown yet, the nearest to the question first; several with the same words are one."""
    wanted = _stems(query)
    fresh = {fact_sentence(fact): fact for fact in reversed(hit.facts) if fact_sentence(fact) not in shown}
    by_nearness = sorted(fresh.items(), key=lambda item: -len(wanted & _stems(item[0])))
    near = [fact for sentence, fact in by_nearness if hit.kind != "text" or wanted & _stems(sentence)]
    return near[:FACTS_PER_TEXT]


def _source_to_show(hit: Hit, facts: list[FoundFact]) -> SourceText | None:
    """The text that was found, else the first that stated the fact."""
    sources = {source.artifact_id: source for source in hit.sources}
    stating = [source_id for fact in facts for source_id in fact.source_ids if source_id in sources]
    return sources.get(hit.id) or (sources[stating[0]] if stating else next(iter(hit.sources), None))


def fact_sentence(fact: FoundFact) -> str:
    """Subject, relation and object as they read."""
    return one_line(f"{fact.subject} {fact.relation.replace('_', ' ')} {fact.object}")


def validity(fact: FoundFact) -> str:
    """When it is true: "since …" where a start is known (year 1 is none), and "until …" where an end is."""
    end = fact.invalid_at or fact.stated_invalid_at
    said = [f"since {day(fact.valid_at)}"] if fact.valid_at.year > 1 else []
    said += [f"until {day(end)}"] if end is not None else []
    return ", ".join(said)


def origin(source: SourceText) -> str:
    """Who said it, when, and where it can be read."""
    who = one_line(source.author) or "unknown author"
    title = f', "{shortened(source.title, 80)}"' if source.title else ""
    url = f", {one_line(source.url)}" if source.url else ""
    return f"{who}, {day(source.valid_at)}{title}{url}"


def quote(text: str, words: str) -> str:
    """The sentence of the text that has the most of the words, shortened."""
    wanted = _stems(words)
    sentences = [found.group().strip() for found in _SENTENCE.finditer(text)]
    return shortened(max(sentences, key=lambda sentence: len(wanted & _stems(sentence)), default=text), QUOTE_CHARS)


def _stems(text: str) -> set[str]:
    return {word.casefold()[:_STEM] for word in _WORD.findall(text.replace("_", " "))}
