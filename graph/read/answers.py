"""What search answers: JSON-ready, frozen. Instants are UTC, intervals half-open; an absent end is null."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from graph.model import FactRow, Id
from topics.records.base import Instant


class Answer(BaseModel):
    """Clients read these too: a field that a newer server added is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class FoundFact(Answer):
    """A fact with its four times and the end its text gave; true at the page's `as_of` as believed at its `known_at`."""

    id: Id
    subject_id: Id
    subject: str
    relation: str
    object_id: Id
    object: str
    description: str
    """The fact as a sentence."""
    valid_at: Instant
    """When it became true."""
    invalid_at: Instant | None = None
    """When it stopped being true, as we know now; not necessarily as was believed at `known_at`."""
    stated_invalid_at: Instant | None = None
    """The end that the text itself gave."""
    created_at: Instant
    """When we came to know it."""
    expired_at: Instant | None = None
    """When we came to know that it had ended."""
    origin: str = ""
    """stated, model, rules or sentence."""
    source_ids: tuple[Id, ...] = ()
    """Artifacts that state it, the oldest first, at most three."""

    @classmethod
    def of(cls, fact: FactRow, source_ids: tuple[Id, ...]) -> FoundFact:
        return cls(
            id=fact.id,
            subject_id=fact.subject_id,
            subject=fact.subject,
            relation=fact.relation,
            object_id=fact.object_id,
            object=fact.object,
            description=fact.description,
            valid_at=fact.valid_at,
            invalid_at=fact.invalid_at,
            stated_invalid_at=fact.stated_invalid_at,
            created_at=fact.created_at,
            expired_at=fact.expired_at,
            origin=fact.origin,
            source_ids=source_ids,
        )


class SourceText(Answer):
    """A stored text, word for word; of a long one the part around the words that were asked for."""

    artifact_id: Id
    run_id: Id
    seq: int
    """Its number in the dataset."""
    text: str
    """At most 4,000 characters."""
    start: int = 0
    """Where `text` begins in the whole, in characters."""
    length: int
    """Of the whole, in characters."""
    title: str = ""
    author: str = ""
    source_type: str = ""
    url: str = ""
    valid_at: Instant
    """The text's own time."""
    created_at: Instant
    """When we came to know it."""


class Hit(Answer):
    """One thing found. `fact`: that fact and its texts. `text`: that text and its facts that are true at the time asked."""

    kind: Literal["fact", "text"]
    id: Id
    """Of the fact or the artifact."""
    score: float
    """Fused by rank: only for order within this answer."""
    found_by: tuple[str, ...]
    """The lists it stood on, e.g. `fact.words`, `text.vector`; sorted."""
    facts: tuple[FoundFact, ...] = ()
    sources: tuple[SourceText, ...] = ()


class SearchPage(Answer):
    """Hits, the best first, judged at `as_of` as believed at `known_at`."""

    hits: tuple[Hit, ...]
    as_of: Instant
    known_at: Instant
    next_cursor: str = ""
    """Gives the next page of the same question at the same times; "" = there is none."""
    degraded: tuple[str, ...] = ()
    """Services that were away or too slow (weaviate, embedder): the hits are what the others found."""
