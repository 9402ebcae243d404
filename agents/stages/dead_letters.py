"""dead_letters: say aloud what failed for good. The topic itself keeps the records, for thirty days.

Reads   dead.letters (DeadLetter)
Sends   nothing
Needs   nothing   Cost  one log line each, without the record's content
"""

from __future__ import annotations

from collections.abc import Sequence

import structlog

from agents.contract import Done, Result, Turn
from agents.deps import Deps
from topics.records import DeadLetter

STAGE = "dead_letters"

logger = structlog.get_logger(__name__)


async def run(turn: Turn[DeadLetter], deps: Deps) -> Sequence[Result]:
    for letter in turn.records:
        logger.warning(
            "record.dead",
            stage=letter.stage,
            topic=letter.topic,
            partition=letter.partition,
            offset=letter.offset,
            error_code=letter.error_code,
            attempts=letter.attempts,
            run_id=str(letter.run_id) if letter.run_id else None,
        )
    return [Done() for _ in turn.deliveries]
