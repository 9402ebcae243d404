"""Rows and plans of the bi-temporal graph: what the stores are given and what they answer. Pure data; the rules of
time are here too.

Times are aware UTC instants and intervals half-open. A fact has four times (features.md, Decision 9): `valid_at` and
`invalid_at` say when it was true, `created_at` and `expired_at` when we believed so; `stated_invalid_at` is the end
that the text itself gave.
"""

from __future__ import annotations

import enum
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from topics.keys import DatasetKey, derived_id

Id = str
"""A UUID as text. Every id contains its dataset by derivation, so no id of one dataset can name a row of another."""


def name_key(name: str) -> str:
    """What names are compared by: NFC, lower case, whitespace collapsed (features.md 125)."""
    return " ".join(unicodedata.normalize("NFC", name).lower().split())


def entity_id(key: DatasetKey, name: str, type_: str) -> Id:
    """Same name and type in a dataset are one entity; another type is another entity (features.md 127)."""
    return str(derived_id("entity", key.user_id, key.dataset, name_key(name), type_))


# ── the fence ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Fence:
    """On whose behalf a plan is written. The store refuses it once another worker has raised the partition's epoch."""

    partition: str
    """log_id/group/topic/partition."""
    epoch: int


class Verdict(enum.Enum):
    """What the fence says of a plan that carries the numbers first..last of one dataset."""

    APPLIED = "written in this transaction"
    SKIPPED = "all of it was there"
    PARTLY = "its beginning was there: read and decide the rest anew"
    HOLE = "a number before it is missing: stop the lane and alarm"
    FENCED = "another worker owns the partition: change nothing, give it up"


def judge(applied: int, owner_epoch: int, *, first: int, last: int, epoch: int) -> Verdict:
    """`applied` is the dataset's last number before the fence touched it. Only APPLIED plans have an effect."""
    if owner_epoch > epoch:
        return Verdict.FENCED
    if applied == first - 1:
        return Verdict.APPLIED
    if applied < first - 1:
        return Verdict.HOLE
    return Verdict.SKIPPED if applied >= last else Verdict.PARTLY


# ── intake ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class NewArtifact:
    """An immutable text to store and number."""

    id: Id
    run_id: Id
    request_hash: str
    text: str
    title: str
    kind: str
    valid_at: datetime
    accepted_at: datetime
    author: str = ""
    source_type: str = "api"
    connector: str = ""
    instance_id: str = ""
    object_id: str = ""
    version: str = ""
    url: str = ""
    session_id: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AdmitPlan:
    """Texts of one dataset, in admission order, to be stored and numbered in one transaction."""

    key: DatasetKey
    fence: Fence
    log_id: str
    position: int
    """Offset of the last of them on `remember.requests`."""
    created_at: datetime
    """Knowledge time: when we came to know the texts."""
    artifacts: tuple[NewArtifact, ...]


@dataclass(frozen=True, slots=True)
class Admitted:
    """The number a text has; `known` if it had it before this plan. `request_hash` is the stored one, `created_at`
    too."""

    seq: int
    request_hash: str
    created_at: datetime
    known: bool


@dataclass(frozen=True, slots=True)
class AdmitOutcome:
    """`fenced`: nothing was stored. Else one entry for each artifact id of the plan."""

    fenced: bool
    admitted: Mapping[Id, Admitted] = field(default_factory=dict)


# ── writer ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class EntityRow:
    id: Id
    name: str
    """As first seen."""
    type: str
    description: str = ""
    created_at: datetime | None = None

    @property
    def name_key(self) -> str:
        return name_key(self.name)


@dataclass(frozen=True, slots=True)
class FactRow:
    """A fact with its four times, `stated_invalid_at` beside them."""

    id: Id
    subject_id: Id
    subject: str
    relation: str
    object_id: Id
    object: str
    description: str
    valid_at: datetime
    created_at: datetime
    invalid_at: datetime | None = None
    stated_invalid_at: datetime | None = None
    expired_at: datetime | None = None
    retracted_at: datetime | None = None
    origin: str = "model"
    model_id: str = ""
    seq: int = 0
    """The number of the write that created it."""


def is_true(fact: FactRow, as_of: datetime, known_at: datetime) -> bool:
    """Was the fact true at `as_of`, as believed at `known_at`? Half-open on both axes; exact for any past belief
    (Decision 9)."""
    if fact.created_at > known_at or (fact.retracted_at is not None and fact.retracted_at <= known_at):
        return False
    believed_end = (
        fact.invalid_at if fact.expired_at is not None and fact.expired_at <= known_at else fact.stated_invalid_at
    )
    return fact.valid_at <= as_of and (believed_end is None or as_of < believed_end)


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """What a turn must know before it decides, for one dataset."""

    key: DatasetKey
    name_keys: frozenset[str]
    """Entities by these names are wanted, of any type."""
    slots: frozenset[tuple[str, str]]
    """(subject's name_key, relation) of one-valued relations: all facts there that are still believed."""
    triples: frozenset[tuple[str, str, str]]
    """(subject's name_key, relation, object's name_key): exact repeats that are still believed."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """What the graph knows, read in one snapshot. `applied_seq` and `known_at` are the dataset's head: 0 and None for
    a new one."""

    applied_seq: int
    known_at: datetime | None
    entities: tuple[EntityRow, ...] = ()
    facts: tuple[FactRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Closure:
    """A believed fact ends: its row stays, its interval closes."""

    fact_id: Id
    invalid_at: datetime
    expired_at: datetime


@dataclass(frozen=True, slots=True)
class WriteReceipt:
    """What one text did, kept so that its change can be told again after a crash, with the same ids."""

    seq: int
    run_id: Id
    artifact_id: Id
    entity_ids: tuple[Id, ...] = ()
    new_entity_ids: tuple[Id, ...] = ()
    created_fact_ids: tuple[Id, ...] = ()
    restated_fact_ids: tuple[Id, ...] = ()
    closed_fact_ids: tuple[Id, ...] = ()
    failed: str = ""


@dataclass(frozen=True, slots=True)
class WritePlan:
    """All effects of a turn: the texts first..last of one dataset, decided in order. Applied whole or not at all."""

    key: DatasetKey
    fence: Fence
    first: int
    last: int
    applied_at: datetime
    """Knowledge time of the transaction; never before the dataset's previous one."""
    receipts: tuple[WriteReceipt, ...]
    new_entities: tuple[EntityRow, ...] = ()
    new_facts: tuple[FactRow, ...] = ()
    closures: tuple[Closure, ...] = ()
    states: tuple[tuple[Id, Id], ...] = ()
    """(artifact id, fact id): which text states which fact."""
    mentions: tuple[tuple[Id, Id], ...] = ()
    """(artifact id, entity id)."""


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    verdict: Verdict
    applied_seq: int
    """The head before this plan; with PARTLY the last number that was there."""


@dataclass(frozen=True, slots=True)
class StoredWrite:
    """A receipt read back with the rows it names, in their present state, in the receipt's order."""

    receipt: WriteReceipt
    applied_at: datetime
    text: str
    title: str
    valid_at: datetime
    accepted_at: datetime
    entities: tuple[EntityRow, ...]
    facts: tuple[FactRow, ...]


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class FactView:
    """A fact and the texts that state it: artifact ids by `valid_at`, oldest first, as many as were asked for."""

    fact: FactRow
    source_ids: tuple[Id, ...]


@dataclass(frozen=True, slots=True)
class TextView:
    """A stored text with where it came from."""

    artifact_id: Id
    run_id: Id
    seq: int
    text: str
    title: str
    author: str
    source_type: str
    """The connector it came by, else api or cli."""
    url: str
    valid_at: datetime
    created_at: datetime
    fact_ids: tuple[Id, ...] = ()
    """All facts it states, true or not at the time asked."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What a search found, made whole at one pair of times: only facts true at `as_of` as believed at `known_at`, and
    texts known by then."""

    facts: Mapping[Id, FactView] = field(default_factory=dict)
    """The facts asked for, those of the entities asked for, and those the texts asked for state."""
    facts_of_entity: Mapping[Id, tuple[Id, ...]] = field(default_factory=dict)
    """Of each entity asked for that has any, the newest first."""
    texts: Mapping[Id, TextView] = field(default_factory=dict)
    """The texts asked for and every source of `facts`."""


@dataclass(frozen=True, slots=True)
class RunView:
    """A run as its events tell it."""

    run_id: Id
    user_id: str
    dataset: str
    state: str
    accepted_at: datetime
    updated_at: datetime
    source_type: str = ""
    idempotency_key: str = ""
    artifact_id: Id | None = None
    seq: int | None = None
    fact_ids: tuple[Id, ...] = ()
    closed_fact_ids: tuple[Id, ...] = ()
    entity_ids: tuple[Id, ...] = ()
    error_code: str = ""
    error: str = ""
    stages: tuple[Mapping[str, object], ...] = ()
    """StageReports as JSON objects, in order of their start."""
