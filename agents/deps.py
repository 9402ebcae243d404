"""What stages may use. Built once a process by strandline/wiring.py; the committers behind the verbs batch over all
lanes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from agents.models.base import Embedder, Extraction, LanguageModel, Vectors
from graph.model import AdmitOutcome, AdmitPlan, CandidateQuery, Candidates, WriteOutcome, WritePlan
from graph.protocols import GraphStore, IndexRow
from topics.clock import Clock
from topics.records import RunEvent

MODEL_CALLS = 32
"""Calls to the model at once in a process; the vendor's own limits are answered by its 429s."""


class Answers:
    """The model's last answers in this process, by (artifact, chunk): a turn that is tried again does not pay for
    what it already has."""

    def __init__(self, room: int = 2048) -> None:
        self._room = room
        self._answers: OrderedDict[tuple[str, int], Extraction] = OrderedDict()

    def get(self, artifact_id: str, index: int) -> Extraction | None:
        return self._answers.get((artifact_id, index))

    def put(self, artifact_id: str, index: int, answer: Extraction) -> None:
        self._answers[artifact_id, index] = answer
        while len(self._answers) > self._room:
            self._answers.popitem(last=False)

    def drop(self, artifact_id: str, chunks: int) -> None:
        """The answers are on the log now."""
        for index in range(chunks):
            self._answers.pop((artifact_id, index), None)


@dataclass(frozen=True, slots=True)
class Deps:
    """The verbs are group-committed: awaiting one means that its effect is durable."""

    clock: Clock
    log_id: str
    model: LanguageModel
    embedder: Embedder
    store: GraphStore
    admit: Callable[[AdmitPlan], Awaitable[AdmitOutcome]]
    candidates: Callable[[CandidateQuery], Awaitable[Candidates]]
    apply: Callable[[WritePlan], Awaitable[WriteOutcome]]
    embed: Callable[[Sequence[str]], Awaitable[Vectors]]
    index: Callable[[Sequence[IndexRow]], Awaitable[None]]
    record_runs: Callable[[Sequence[RunEvent]], Awaitable[None]]
    answers: Answers = field(default_factory=Answers)
    model_slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MODEL_CALLS))
