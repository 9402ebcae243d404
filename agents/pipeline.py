"""STAGES, the table of all that happens to a record. Read it top to bottom: that is the path.

Hosts run it (agents/kafka_host), the topics' senders and readers are checked against it, docs are made from it.
"""

from __future__ import annotations

from datetime import timedelta

from agents.contract import AnyStage, RetryPolicy, Stage
from agents.stages import dead_letters, extract, indexer, intake, router, runs, writer

STAGES: tuple[AnyStage, ...] = (
    Stage("router", reads="source.events", sends=("remember.requests",), run=router.run, turn_records=64),
    Stage(
        "intake",
        reads="remember.requests",
        sends=("remember.texts",),
        run=intake.run,
        give_up=intake.give_up,
        fenced=True,
    ),
    Stage(
        "extract",
        reads="remember.texts",
        sends=("graph.writes",),
        run=extract.run,
        give_up=extract.give_up,
        # One try must end before a rebalance does; a model that needs longer is tried again with what it has answered
        # so far.
        retry=RetryPolicy(attempts=8, deadline=timedelta(seconds=50)),
        slots=32,
    ),
    Stage(
        "writer", reads="graph.writes", sends=("graph.changes",), run=writer.run, give_up=writer.give_up, fenced=True
    ),
    Stage(
        "indexer",
        reads="graph.changes",
        sends=(),
        run=indexer.run,
        # As the writer: a change that is told again comes without vectors.
        retry=RetryPolicy(attempts=12, deadline=timedelta(seconds=50)),
    ),
    # Its committer gathers for long, so many turns wait for it at once.
    Stage("runs", reads="remember.runs", sends=(), run=runs.run, turn_records=256, slots=128, in_run_log=False),
    Stage("dead_letters", reads="dead.letters", sends=(), run=dead_letters.run, in_run_log=False),
)
