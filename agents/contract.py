"""What a stage is given and what it answers. Hosts (Kafka, local) run stages by this contract and nothing else.

A stage is a plain coroutine `run(turn, deps)`: it takes the records of one dataset that wait, in order, and answers
one result for each. It sends nothing itself, acknowledges nothing, writes no run log and no metrics: the host does,
after the stage's effect is durable. It must be safe to repeat.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar
from uuid import UUID

from graph.model import Fence
from topics.envelope import Incoming, Outgoing
from topics.errors import Permanent, Retryable
from topics.keys import DatasetKey
from topics.records import Record, RunState

R = TypeVar("R", bound=Record)
D = TypeVar("D")


class Fenced(Permanent):
    """Another worker owns the partition now: nothing was written; the turn is abandoned without acknowledgement, not
    dead-lettered."""

    code = "fenced"

    @classmethod
    def of(cls, fence: Fence) -> Fenced:
        """What the store's refusal of this fence means."""
        return cls(f"partition {fence.partition} belongs to another worker since epoch {fence.epoch}")


class Hole(Retryable):
    """A number before this turn is missing in the store: the lane waits and alarms, its followers must not overtake
    what is lost."""

    code = "hole"


@dataclass(frozen=True, slots=True)
class Delivery(Generic[R]):
    """One record and where it lay."""

    record: R
    incoming: Incoming


@dataclass(frozen=True, slots=True)
class Turn(Generic[R]):
    """Records of one dataset, in the order of their partition; at least one."""

    key: DatasetKey
    fence: Fence
    deliveries: tuple[Delivery[R], ...]

    @property
    def records(self) -> tuple[R, ...]:
        return tuple(delivery.record for delivery in self.deliveries)


@dataclass(frozen=True, slots=True)
class RunNote:
    """What the run log is to say of a record; the host adds stage, times and attempts."""

    run_id: UUID
    accepted_at: datetime
    state: RunState
    artifact_id: UUID | None = None
    seq: int | None = None
    fact_ids: tuple[UUID, ...] = ()
    closed_fact_ids: tuple[UUID, ...] = ()
    entity_ids: tuple[UUID, ...] = ()
    error_code: str = ""
    error: str = ""
    idempotency_key: str = ""
    source_type: str = ""


@dataclass(frozen=True, slots=True)
class Done:
    """The record is handled: what to send on, in order, and what the run log says."""

    sends: tuple[Outgoing, ...] = ()
    note: RunNote | None = None


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The record cannot be handled for good: dead letter. `sends` still go out, e.g. the empty write that keeps
    numbers without a hole."""

    error: Permanent
    sends: tuple[Outgoing, ...] = ()
    note: RunNote | None = None


Result = Done | GaveUp


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How a stage is retried in place. An outage never counts as an attempt; it waits for the service without limit."""

    attempts: int = 8
    backoff: timedelta = timedelta(milliseconds=200)
    """Doubled each time, with jitter."""
    backoff_cap: timedelta = timedelta(seconds=20)
    deadline: timedelta = timedelta(seconds=20)
    """Of one try of one turn; far below the rebalance time-out, since a rebalance waits for started turns."""


@dataclass(frozen=True, slots=True)
class Stage(Generic[R, D]):
    """One row of STAGES."""

    name: str
    reads: str
    """Topic."""
    sends: tuple[str, ...]
    """Topics; every stage also sends remember.runs and dead.letters through its host."""
    run: Callable[[Turn[R], D], Awaitable[Sequence[Result]]]
    give_up: Callable[[Turn[R], Permanent, D], Awaitable[GaveUp]] | None = None
    """For a turn of one record that failed for good: what must still happen (send its number on). None: nothing."""
    retry: RetryPolicy = field(default=RetryPolicy())
    turn_records: int = 32
    """At most so many records of a dataset in one turn."""
    slots: int = 16
    """Turns at once in a process: more make smaller turns."""
    in_run_log: bool = True
    """Its start is told when it takes long. False for a stage that reads what is told: it would answer itself."""
    fenced: bool = False
    """Its effect is guarded by the partition's epoch: turns wait until the epoch is known."""


AnyStage = Stage[Any, Any]
