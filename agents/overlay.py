"""What a dataset knows while a turn is decided: the candidates read from the graph, and on top of them what the turn
has decided so far.

A turn holds several texts of one dataset. They are decided one after the other, in number order, and each sees what
the ones before it decided, although nothing is written yet. What comes out is one plan for the whole turn.

The rules here need no model: same name and type is the same entity; the same triple that still holds is the same
fact; a newer fact of a one-valued relation ends the older; older news never overwrites newer. Only
`graph/relations.py` says which relations are one-valued.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from graph.model import Candidates, Closure, EntityRow, FactRow, Id, WriteReceipt, entity_id, name_key
from graph.relations import canonical, may_close, relation_of
from topics.keys import DatasetKey, derived_id
from topics.records import EntityMention, FactStatement, GraphWrite

LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
"""The start of a fact of which only the end is known."""


@dataclass(slots=True)
class Decided:
    """The effects of a turn, gathered text by text."""

    new_entities: dict[Id, EntityRow] = field(default_factory=dict)
    new_facts: dict[Id, FactRow] = field(default_factory=dict)
    closures: dict[Id, Closure] = field(default_factory=dict)
    states: dict[tuple[Id, Id], None] = field(default_factory=dict)
    mentions: dict[tuple[Id, Id], None] = field(default_factory=dict)
    receipts: list[WriteReceipt] = field(default_factory=list)


@dataclass(slots=True)
class _Effects:
    """What one text does, in order and each once (dicts as ordered sets)."""

    entities: dict[Id, None] = field(default_factory=dict)
    new_entities: dict[Id, None] = field(default_factory=dict)
    created: dict[Id, None] = field(default_factory=dict)
    restated: dict[Id, None] = field(default_factory=dict)
    closed: dict[Id, None] = field(default_factory=dict)


class Overlay:
    """Decides the texts of one turn, in order. Pure: reads nothing, writes nothing, takes no time."""

    def __init__(self, key: DatasetKey, known: Candidates, now: datetime) -> None:
        """`now` is the knowledge time of the whole turn (UTC)."""
        self._key = key
        self._now = now
        self.decided = Decided()
        self.entities: dict[Id, EntityRow] = {}
        self.facts: dict[Id, FactRow] = {}
        self._by_name: defaultdict[str, list[EntityRow]] = defaultdict(list)
        self._by_slot: defaultdict[tuple[Id, str], dict[Id, None]] = defaultdict(dict)
        for entity in known.entities:
            self._add_entity(entity)
        for fact in known.facts:
            self._add_fact(fact)

    def decide(self, write: GraphWrite) -> WriteReceipt:
        """The effects of one text; its statements are taken in the order of their dates, so a text may contradict
        itself over time."""
        effects = _Effects()
        types = {
            name_key(mention.name): mention.type for mention in reversed(write.entities) if mention.type != "other"
        }
        if not write.failed:
            for mention in write.entities:
                self._mention(mention, effects)
            dated = sorted(write.statements, key=lambda statement: _instant(statement, write))
            for statement in dated:
                self._state(write, statement, types, effects)
        artifact = str(write.artifact_id)
        for entity in effects.entities:
            self.decided.mentions[artifact, entity] = None
        for fact in (*effects.created, *effects.restated):
            self.decided.states[artifact, fact] = None
        receipt = WriteReceipt(
            seq=write.seq,
            run_id=str(write.run_id),
            artifact_id=artifact,
            entity_ids=tuple(effects.entities),
            new_entity_ids=tuple(effects.new_entities),
            created_fact_ids=tuple(effects.created),
            restated_fact_ids=tuple(effects.restated),
            closed_fact_ids=tuple(effects.closed),
            failed=write.failed,
        )
        self.decided.receipts.append(receipt)
        return receipt

    # ── entities ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _mention(self, mention: EntityMention, effects: _Effects) -> EntityRow:
        entity = self._resolve(mention)
        if entity is None:
            entity = EntityRow(
                id=entity_id(self._key, mention.name, mention.type),
                name=" ".join(mention.name.split()),
                type=mention.type,
                description=mention.description,
                created_at=self._now,
            )
            self._add_entity(entity)
            self.decided.new_entities[entity.id] = entity
            effects.new_entities[entity.id] = None
        effects.entities[entity.id] = None
        return entity

    def _resolve(self, mention: EntityMention) -> EntityRow | None:
        """Same name and type; a mention without a type is whoever bears the name alone, and a row without a type is
        anybody's."""
        named = self._by_name[name_key(mention.name)]
        for entity in named:
            if entity.type == mention.type:
                return entity
        if len(named) == 1 and "other" in (mention.type, named[0].type):
            return named[0]
        return None

    def _add_entity(self, entity: EntityRow) -> None:
        if entity.id not in self.entities:
            self.entities[entity.id] = entity
            self._by_name[entity.name_key].append(entity)

    # ── facts ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _state(self, write: GraphWrite, statement: FactStatement, types: dict[str, str], effects: _Effects) -> None:
        relation = canonical(statement.relation)
        if not relation:
            return
        subject = self._end(statement.subject, statement.subject_type, types, effects)
        object_ = self._end(statement.object, statement.object_type, types, effects)
        slot = [self.facts[fact] for fact in self._by_slot[subject.id, relation]]
        is_past = _is_past(statement, write)
        valid_at = _start_before(statement.invalid_at, slot) if is_past else _instant(statement, write)
        speaks_at = _just_before(statement.invalid_at) if is_past else valid_at
        same = [fact for fact in slot if fact.object_id == object_.id and _holds(fact, speaks_at)]
        if statement.ends:
            for fact in same:
                self._close(fact, valid_at, effects)
            return
        if same:
            self._restate(same[0], statement, effects)
            return
        fact = self._new_fact(write, statement, subject, relation, object_, valid_at)
        is_interval = fact.invalid_at is None or fact.invalid_at > valid_at
        if is_interval and not is_past and may_close(relation, statement.origin):
            fact = self._bounded(fact, slot)
            for older in slot:
                if older.valid_at <= valid_at and _holds(older, valid_at):
                    self._close(older, valid_at, effects)
        elif is_interval:
            # The same fact stands from then on: this row is only what came before it.
            fact = self._bounded(fact, [other for other in slot if other.object_id == object_.id])
        self._add_fact(fact)
        self.decided.new_facts[fact.id] = fact
        effects.created[fact.id] = None

    def _new_fact(
        self,
        write: GraphWrite,
        statement: FactStatement,
        subject: EntityRow,
        relation: str,
        object_: EntityRow,
        valid_at: datetime,
    ) -> FactRow:
        return FactRow(
            id=self._fact_id(write, subject, relation, object_, valid_at),
            subject_id=subject.id,
            subject=subject.name,
            relation=relation,
            object_id=object_.id,
            object=object_.name,
            description=statement.description or relation_of(relation).sentence(subject.name, object_.name),
            valid_at=valid_at,
            created_at=self._now,
            invalid_at=statement.invalid_at,
            stated_invalid_at=statement.invalid_at,
            origin=statement.origin,
            model_id="" if statement.origin == "stated" else write.model_id,
            seq=write.seq,
        )

    def _end(self, name: str, type_: str, types: dict[str, str], effects: _Effects) -> EntityRow:
        if type_ == "other":
            type_ = types.get(name_key(name), type_)
        return self._mention(EntityMention(name=name, type=type_), effects)

    def _fact_id(
        self, write: GraphWrite, subject: EntityRow, relation: str, object_: EntityRow, valid_at: datetime
    ) -> Id:
        return str(derived_id("fact", str(write.artifact_id), subject.id, relation, object_.id, valid_at.isoformat()))

    def _restate(self, fact: FactRow, statement: FactStatement, effects: _Effects) -> None:
        if fact.id not in effects.created:
            effects.restated[fact.id] = None
        if statement.invalid_at is not None and fact.invalid_at is None and statement.invalid_at > fact.valid_at:
            self._close(fact, statement.invalid_at, effects)

    def _bounded(self, fact: FactRow, slot: list[FactRow]) -> FactRow:
        """Old news that arrives late: it was true only until the next thing that still stands."""
        later = [other.valid_at for other in slot if other.valid_at > fact.valid_at]
        if later and (fact.invalid_at is None or min(later) < fact.invalid_at):
            return self._ended(fact, min(later))
        return fact

    def _ended(self, fact: FactRow, at: datetime) -> FactRow:
        """Stored already closed: we never believed it open, so its knowledge interval is empty beyond `now`."""
        return replace(fact, invalid_at=at, expired_at=self._now)

    def _close(self, fact: FactRow, at: datetime, effects: _Effects) -> None:
        ended = replace(fact, invalid_at=at, expired_at=self._now)
        self.facts[fact.id] = ended
        if fact.id in self.decided.new_facts:
            self.decided.new_facts[fact.id] = ended
        else:
            self.decided.closures[fact.id] = Closure(fact.id, at, self._now)
        effects.closed[fact.id] = None

    def _add_fact(self, fact: FactRow) -> None:
        self.facts[fact.id] = fact
        self._by_slot[fact.subject_id, fact.relation][fact.id] = None


def _is_past(statement: FactStatement, write: GraphWrite) -> bool:
    """ "Worked at Acme until 2020": an end that lies behind the text, and no start. It says nothing of the present."""
    end = statement.invalid_at
    return not statement.ends and statement.valid_at is None and end is not None and end <= write.valid_at


def _start_before(end: datetime | None, slot: list[FactRow]) -> datetime:
    """When something of unknown start may have begun: with the last change before its end that is known, else long ago."""
    changes = [at for fact in slot for at in (fact.valid_at, fact.invalid_at) if at is not None and end and at < end]
    return max(changes, default=LONG_AGO)


def _just_before(end: datetime | None) -> datetime:
    return end - timedelta(microseconds=1) if end and end > LONG_AGO else LONG_AGO


def _instant(statement: FactStatement, write: GraphWrite) -> datetime:
    """From when on a statement speaks: its start, for an ending its end, else the text's reference time."""
    said = (statement.invalid_at or statement.valid_at) if statement.ends else statement.valid_at
    return said or write.valid_at


def _holds(fact: FactRow, at: datetime) -> bool:
    """Still true at `at` for what we believe now, and open to be restated or closed (features.md 101, 110)."""
    return (
        fact.expired_at is None
        and fact.retracted_at is None
        and fact.valid_at <= at
        and (fact.invalid_at is None or at < fact.invalid_at)
    )
