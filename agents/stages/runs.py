"""runs: fold the run events into the run log, for whoever asks later.

Reads   remember.runs (RunEvent)
Sends   nothing
Needs   deps.record_runs   Cost  one transaction for all lanes that wait
"""

from __future__ import annotations

from collections.abc import Sequence

from agents.contract import Done, Result, Turn
from agents.deps import Deps
from topics.records import RunEvent

STAGE = "runs"


async def run(turn: Turn[RunEvent], deps: Deps) -> Sequence[Result]:
    await deps.record_runs(turn.records)
    return [Done() for _ in turn.deliveries]
