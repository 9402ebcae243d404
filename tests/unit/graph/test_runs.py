"""The fold of run events does not care for order or repetition."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import reduce
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from graph.runs import STATE_RANK, FoldedRun, folded, joined, run_key
from topics.records import RunEvent, StageReport

NOON = datetime(2025, 3, 1, 12, tzinfo=UTC)
instants = st.integers(0, 5).map(lambda hours: NOON + timedelta(hours=hours))
ids = st.integers(0, 3).map(lambda number: UUID(int=number))
id_lists = st.lists(ids, max_size=3).map(tuple)
stages = st.builds(
    StageReport,
    stage=st.sampled_from(["intake", "extract", "writer"]),
    state=st.sampled_from(["started", "succeeded", "failed"]),
    started_at=instants,
    finished_at=st.none() | instants,
    attempts=st.integers(1, 3),
    error=st.sampled_from(["", "away"]),
)
events = st.builds(
    RunEvent,
    user_id=st.just("ada"),
    run_id=st.just(UUID(int=1)),
    state=st.sampled_from(sorted(STATE_RANK)),
    at=instants,
    accepted_at=instants,
    stage=st.none() | stages,
    artifact_id=st.none() | ids,
    seq=st.none() | st.integers(1, 3),
    fact_ids=id_lists,
    closed_fact_ids=id_lists,
    entity_ids=id_lists,
    error_code=st.sampled_from(["", "refused"]),
    error=st.sampled_from(["", "no room"]),
    idempotency_key=st.sampled_from(["", "k"]),
    source_type=st.sampled_from(["", "api", "cli"]),
)


def fold(told: list[RunEvent]) -> FoldedRun:
    return reduce(joined, map(folded, told))


@given(st.lists(events, min_size=1, max_size=7), st.randoms(use_true_random=False))
def test_any_order_gives_the_same_run(told: list[RunEvent], random: object) -> None:
    shuffled = list(told)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert fold(shuffled) == fold(told)


@given(st.lists(events, min_size=1, max_size=5))
def test_repeats_change_nothing(told: list[RunEvent]) -> None:
    assert fold(told + told) == fold(told)


@given(st.lists(events, min_size=2, max_size=6), st.integers(1, 5))
def test_folded_parts_join_to_the_whole(told: list[RunEvent], cut: int) -> None:
    cut = min(cut, len(told) - 1)
    assert joined(fold(told[:cut]), fold(told[cut:])) == fold(told)


@given(st.lists(events, min_size=1, max_size=6))
def test_the_furthest_state_wins_and_of_ends_the_first(told: list[RunEvent]) -> None:
    best = max(STATE_RANK[one.state] for one in told)
    first = min(one.at for one in told if STATE_RANK[one.state] == best)
    run = fold(told)
    assert STATE_RANK[run.view.state] == best
    assert run.state_at == first


def test_a_stage_that_was_repeated_lasts_from_first_start_to_first_success() -> None:
    def report(state: str, hour: int, finished: int | None, attempts: int) -> RunEvent:
        stage = StageReport.model_validate(
            {
                "stage": "writer",
                "state": state,
                "started_at": NOON + timedelta(hours=hour),
                "finished_at": None if finished is None else NOON + timedelta(hours=finished),
                "attempts": attempts,
            }
        )
        return RunEvent(user_id="ada", run_id=UUID(int=1), state="enriching", at=NOON, accepted_at=NOON, stage=stage)

    run = fold([report("started", 1, None, 1), report("succeeded", 2, 4, 2), report("succeeded", 5, 6, 1)])
    stage = run.stages["writer"]
    assert (stage.state, stage.attempts) == ("succeeded", 2)
    assert (stage.started_at, stage.finished_at) == (NOON + timedelta(hours=1), NOON + timedelta(hours=4))


def test_the_row_of_a_run_names_its_user() -> None:
    assert run_key("ada", "1") != run_key("bob", "1")
