"""extract: find entities, facts and their dates in texts. Many model calls at once; order out is order in.

Reads   remember.texts (RememberText)
Sends   graph.writes (GraphWrite), in number order per dataset, one for each text whatever happened: numbers have no
        hole
Needs   deps.model   Cost  one model call a chunk; none for what a payload already states, nor for a text that is
        written already
Fails   a model that refuses, or an answer cut short: dead letter, run failed, and the number goes on with nothing to
        write
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from agents.bounds import bounded_entities, bounded_statements
from agents.contract import Done, GaveUp, Result, RunNote, Turn
from agents.deps import Deps
from agents.models.base import Extraction, Passage
from graph.model import CandidateQuery
from topics import ids
from topics.envelope import Outgoing
from topics.errors import Permanent
from topics.records import EntityMention, FactStatement, GraphWrite, RememberText, StatedFact

STAGE = "extract"

SURELY_NEW = timedelta(seconds=10)
"""A text accepted within this comes for the first time, but for a crash just now; asking the graph would cost the common
case a read a turn."""


async def run(turn: Turn[RememberText], deps: Deps) -> Sequence[Result]:
    written = await _written_up_to(turn, deps)
    reads = [_read(text, deps) if text.seq > written else _nothing() for text in turn.records]
    answers = await asyncio.gather(*reads, return_exceptions=True)
    # A failure that another try may mend is the turn's: finished answers are kept, so the next try pays only for the
    # rest.
    for answer in answers:
        if isinstance(answer, BaseException) and not isinstance(answer, Permanent):
            raise answer
    results: list[Result] = []
    for delivery, answer in zip(turn.deliveries, answers, strict=True):
        text, traceparent = delivery.record, delivery.incoming.traceparent
        if isinstance(answer, Permanent):
            results.append(_gave_up(text, answer, traceparent))
        elif not isinstance(answer, BaseException):
            note = RunNote(text.run_id, text.accepted_at, "enriching", artifact_id=text.artifact_id, seq=text.seq)
            results.append(Done((_send(_write_of(text, answer), traceparent),), note))
    return results


async def give_up(turn: Turn[RememberText], error: Permanent, deps: Deps) -> GaveUp:
    delivery = turn.deliveries[0]
    return _gave_up(delivery.record, error, delivery.incoming.traceparent)


def _gave_up(text: RememberText, error: Permanent, traceparent: str) -> GaveUp:
    empty = _write_of(text, Extraction()).model_copy(update={"failed": str(error) or error.code, "statements": ()})
    note = RunNote(
        text.run_id,
        text.accepted_at,
        "failed",
        artifact_id=text.artifact_id,
        seq=text.seq,
        error_code=error.code,
        error=str(error),
    )
    return GaveUp(error, (_send(empty, traceparent),), note)


async def _written_up_to(turn: Turn[RememberText], deps: Deps) -> int:
    """The last number whose write is in the graph, asked only where a text may come again: its answer would be skipped,
    so none is bought."""
    recent = deps.clock.now() - SURELY_NEW
    if all(text.accepted_at > recent and not text.redelivered for text in turn.records):
        return 0
    head = await deps.candidates(CandidateQuery(turn.key, frozenset(), frozenset(), frozenset()))
    return head.applied_seq


async def _nothing() -> Extraction:
    return Extraction()


async def _read(text: RememberText, deps: Deps) -> Extraction:
    if not text.needs_model:
        return Extraction()
    pieces = [text.text[chunk.start : chunk.end] for chunk in text.chunks] or [text.text]
    found = await asyncio.gather(*(_read_piece(text, index, piece, deps) for index, piece in enumerate(pieces)))
    if len(found) == 1:
        return found[0]
    return Extraction(
        entities=tuple(entity for part in found for entity in part.entities),
        statements=tuple(statement for part in found for statement in part.statements),
        model_id=found[0].model_id,
    )


async def _read_piece(text: RememberText, index: int, piece: str, deps: Deps) -> Extraction:
    artifact = str(text.artifact_id)
    if (answer := deps.answers.get(artifact, index)) is not None:
        return answer
    async with deps.model_slots:
        answer = await deps.model.extract(
            Passage(piece, text.valid_at, title=text.title, author=text.author, author_type=text.author_type)
        )
    deps.answers.put(artifact, index, answer)
    return answer


def _write_of(text: RememberText, found: Extraction) -> GraphWrite:
    stated = tuple(_statement(fact) for fact in text.stated_facts)
    statements = bounded_statements(stated + found.statements)
    return GraphWrite(
        user_id=text.user_id,
        dataset=text.dataset,
        run_id=text.run_id,
        artifact_id=text.artifact_id,
        seq=text.seq,
        text=text.text,
        title=text.title,
        chunks=text.chunks,
        valid_at=text.valid_at,
        accepted_at=text.accepted_at,
        entities=bounded_entities(_entities_of(stated) + found.entities),
        statements=statements,
        model_id=found.model_id,
    )


def _statement(fact: StatedFact) -> FactStatement:
    return FactStatement(
        subject=fact.subject,
        subject_type=fact.subject_type,
        relation=fact.relation,
        object=fact.object,
        object_type=fact.object_type,
        description=fact.description,
        valid_at=fact.valid_at,
        invalid_at=fact.invalid_at,
        origin="stated",
    )


def _entities_of(statements: Sequence[FactStatement]) -> tuple[EntityMention, ...]:
    ends = [(s.subject, s.subject_type) for s in statements] + [(s.object, s.object_type) for s in statements]
    return tuple(EntityMention(name=name, type=type_) for name, type_ in dict.fromkeys(ends))


def _send(write: GraphWrite, traceparent: str) -> Outgoing:
    return Outgoing(
        "graph.writes",
        write,
        id=ids.sent_id("graph.writes", write.run_id),
        sender=STAGE,
        time=write.accepted_at,
        subject=str(write.run_id),
        sequence=write.seq,
        traceparent=traceparent,
    )
