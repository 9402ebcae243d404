"""A GraphStore in memory, obeying the same contract suite as the real ones: for tests of stages under every kind of redelivery."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from graph.model import (
    AdmitOutcome,
    AdmitPlan,
    Admitted,
    CandidateQuery,
    Candidates,
    EntityRow,
    FactRow,
    Id,
    NewArtifact,
    StoredWrite,
    Verdict,
    WriteOutcome,
    WritePlan,
    WriteReceipt,
    judge,
)
from topics.errors import Permanent
from topics.keys import DatasetKey


@dataclass
class MemoryGraphStore:
    """Rows in dictionaries; a call is one step of the event loop, hence one transaction."""

    epochs: dict[str, int] = field(default_factory=dict)
    artifacts: dict[Id, tuple[NewArtifact, Admitted]] = field(default_factory=dict)
    entities: dict[Id, EntityRow] = field(default_factory=dict)
    facts: dict[Id, FactRow] = field(default_factory=dict)
    states: set[tuple[Id, Id]] = field(default_factory=set)
    mentions: set[tuple[Id, Id]] = field(default_factory=set)
    receipts: dict[tuple[DatasetKey, int], tuple[WriteReceipt, WritePlan]] = field(default_factory=dict)
    numbers: dict[DatasetKey, int] = field(default_factory=dict)
    heads: dict[DatasetKey, Candidates] = field(default_factory=dict)
    owners: dict[Id, DatasetKey] = field(default_factory=dict)

    async def raise_epochs(self, partitions: Sequence[str]) -> Mapping[str, int]:
        for partition in partitions:
            self.epochs[partition] = self.epochs.get(partition, 0) + 1
        return {partition: self.epochs[partition] for partition in partitions}

    async def admit(self, plans: Sequence[AdmitPlan]) -> Sequence[AdmitOutcome]:
        _one_a_dataset([plan.key for plan in plans])
        return [self._admit(plan) for plan in plans]

    def _admit(self, plan: AdmitPlan) -> AdmitOutcome:
        if self.epochs.get(plan.fence.partition, 0) > plan.fence.epoch:
            return AdmitOutcome(fenced=True)
        answers: dict[Id, Admitted] = {}
        for artifact in plan.artifacts:
            if artifact.id in self.artifacts:
                answers[artifact.id] = replace(self.artifacts[artifact.id][1], known=True)
                continue
            self.numbers[plan.key] = self.numbers.get(plan.key, 0) + 1
            admitted = Admitted(self.numbers[plan.key], artifact.request_hash, plan.created_at, known=False)
            self.artifacts[artifact.id] = (artifact, admitted)
            answers[artifact.id] = admitted
        return AdmitOutcome(fenced=False, admitted=answers)

    async def candidates(self, queries: Sequence[CandidateQuery]) -> Sequence[Candidates]:
        return [self._candidates(query) for query in queries]

    def _candidates(self, query: CandidateQuery) -> Candidates:
        head = self.heads.get(query.key, Candidates(0, None))
        mine = [entity for entity in self.entities.values() if self.owners[entity.id] == query.key]
        names = {entity.id: entity.name_key for entity in mine}
        facts = tuple(
            fact
            for fact in self.facts.values()
            if self.owners[fact.id] == query.key
            and fact.expired_at is None
            and (
                (names[fact.subject_id], fact.relation) in query.slots
                or (names[fact.subject_id], fact.relation, names[fact.object_id]) in query.triples
            )
        )
        wanted = tuple(entity for entity in mine if entity.name_key in query.name_keys)
        return Candidates(head.applied_seq, head.known_at, wanted, facts)

    async def apply(self, plans: Sequence[WritePlan]) -> Sequence[WriteOutcome]:
        _one_a_dataset([plan.key for plan in plans])
        for plan in plans:
            self._check(plan)
        return [self._apply(plan) for plan in plans]

    def _check(self, plan: WritePlan) -> None:
        """A plan is applied whole or not at all, and with its group: so it is looked at before anything is written."""
        if self._judged(plan)[0] is not Verdict.APPLIED:
            return
        entities = {id_ for id_ in self.entities if self.owners[id_] == plan.key} | {
            one.id for one in plan.new_entities
        }
        facts = {id_ for id_ in self.facts if self.owners[id_] == plan.key} | {one.id for one in plan.new_facts}
        named = {id_ for one in plan.new_facts for id_ in (one.subject_id, one.object_id)} | {
            id_ for _, id_ in plan.mentions
        }
        told = {one.fact_id for one in plan.closures} | {id_ for _, id_ in plan.states}
        texts = {id_ for id_, _ in (*plan.states, *plan.mentions)}
        if named - entities or told - facts or texts - set(self.artifacts):
            raise Permanent("the plan names a row that is not stored")

    def _judged(self, plan: WritePlan) -> tuple[Verdict, int]:
        applied = self.heads.get(plan.key, Candidates(0, None)).applied_seq
        owner = self.epochs.get(plan.fence.partition, 0)
        return judge(applied, owner, first=plan.first, last=plan.last, epoch=plan.fence.epoch), applied

    def _apply(self, plan: WritePlan) -> WriteOutcome:
        verdict, applied = self._judged(plan)
        if verdict is not Verdict.APPLIED:
            return WriteOutcome(verdict, applied)
        self.heads[plan.key] = Candidates(plan.last, plan.applied_at)
        for entity in plan.new_entities:
            self.entities.setdefault(entity.id, entity)
            self.owners[entity.id] = plan.key
        for fact in plan.new_facts:
            assert fact.id not in self.facts, "a fact's id is derived from its text: it can be created once only"
            self.facts[fact.id] = fact
            self.owners[fact.id] = plan.key
        for closure in plan.closures:
            fact = self.facts[closure.fact_id]
            assert fact.expired_at is None, "closed twice"
            self.facts[fact.id] = replace(fact, invalid_at=closure.invalid_at, expired_at=closure.expired_at)
        self.states.update(plan.states)
        self.mentions.update(plan.mentions)
        for receipt in plan.receipts:
            self.receipts[plan.key, receipt.seq] = (receipt, plan)
        return WriteOutcome(verdict, applied)

    async def stored_writes(self, key: DatasetKey, seqs: Sequence[int]) -> Sequence[StoredWrite]:
        return [self._stored(*self.receipts[key, seq]) for seq in seqs if (key, seq) in self.receipts]

    def _stored(self, receipt: WriteReceipt, plan: WritePlan) -> StoredWrite:
        artifact, _ = self.artifacts[receipt.artifact_id]
        facts = dict.fromkeys((*receipt.created_fact_ids, *receipt.restated_fact_ids, *receipt.closed_fact_ids))
        return StoredWrite(
            receipt=receipt,
            applied_at=plan.applied_at,
            text=artifact.text,
            title=artifact.title,
            valid_at=artifact.valid_at,
            accepted_at=artifact.accepted_at,
            entities=tuple(self.entities[entity] for entity in receipt.entity_ids),
            facts=tuple(self.facts[fact] for fact in facts),
        )


def _one_a_dataset(keys: Sequence[DatasetKey]) -> None:
    if len(set(keys)) != len(keys):
        raise Permanent("two plans of one dataset in a group")
