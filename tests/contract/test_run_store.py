"""RunStore: what every implementation must do."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import datetime
from uuid import UUID, uuid4

import pytest

from graph.protocols import RunStore
from tests.contract.backends import NEO4J, open_runs
from tests.contract.graph_rows import NOON, day
from topics.errors import Refused
from topics.records import RunEvent, RunState, StageReport, StageState


@pytest.fixture(params=["memory", NEO4J])
async def runs(request: pytest.FixtureRequest) -> AsyncIterator[RunStore]:
    async with open_runs(request.param, request) as runs:
        yield runs


def event(
    run_id: UUID,
    state: RunState,
    *,
    user: str,
    at: datetime = NOON,
    accepted_at: datetime = NOON,
    stage: StageReport | None = None,
    dataset: str = "main",
    error: str = "",
) -> RunEvent:
    return RunEvent(
        user_id=user,
        dataset=dataset,
        run_id=run_id,
        state=state,
        at=at,
        accepted_at=accepted_at,
        stage=stage,
        error=error,
    )


def report(name: str, state: StageState, at: datetime) -> StageReport:
    return StageReport(stage=name, state=state, started_at=NOON, finished_at=None if state == "started" else at)


async def test_a_run_is_what_its_events_tell(runs: RunStore) -> None:
    user, run_id, fact_id, entity_id, artifact_id = f"user-{uuid4()}", uuid4(), uuid4(), uuid4(), uuid4()
    told = event(run_id, "complete", user=user, at=day(1), stage=report("writer", "succeeded", day(1))).model_copy(
        update={
            "fact_ids": (fact_id,),
            "closed_fact_ids": (fact_id,),
            "entity_ids": (entity_id,),
            "artifact_id": artifact_id,
            "seq": 7,
            "idempotency_key": "key-1",
            "source_type": "api",
        }
    )
    await runs.record_runs([event(run_id, "accepted", user=user), told])
    run = await runs.run(user, str(run_id))
    assert run is not None
    assert (run.state, run.user_id, run.dataset, run.seq) == ("complete", user, "main", 7)
    assert (run.accepted_at, run.updated_at) == (NOON, day(1))
    assert (run.fact_ids, run.closed_fact_ids, run.entity_ids) == ((str(fact_id),), (str(fact_id),), (str(entity_id),))
    assert (run.artifact_id, run.idempotency_key, run.source_type) == (str(artifact_id), "key-1", "api")
    assert [(one["stage"], one["state"]) for one in run.stages] == [("writer", "succeeded")]


async def test_events_in_any_order_and_any_number_make_the_same_run(runs: RunStore) -> None:
    user = f"user-{uuid4()}"

    def story(run_id: UUID) -> list[RunEvent]:
        return [
            event(run_id, "accepted", user=user),
            event(run_id, "queryable", user=user, at=day(1), stage=report("intake", "succeeded", day(1))),
            event(run_id, "enriching", user=user, at=day(2), stage=report("extract", "started", day(2))),
            event(run_id, "enriching", user=user, at=day(3), stage=report("extract", "succeeded", day(3))),
            event(run_id, "failed", user=user, at=day(4), stage=report("writer", "failed", day(4)), error="no room"),
        ]

    seen = []
    for seed in range(4):
        run_id = uuid4()
        events = story(run_id) + story(run_id)
        random.Random(seed).shuffle(events)
        for start in range(0, len(events), 3):
            await runs.record_runs(events[start : start + 3])
        run = await runs.run(user, str(run_id))
        assert run is not None
        seen.append((run.state, run.error, run.updated_at, run.stages))
    assert all(one == seen[0] for one in seen)
    assert seen[0][:3] == ("failed", "no room", day(4))


async def test_a_final_state_stays(runs: RunStore) -> None:
    user, run_id = f"user-{uuid4()}", uuid4()
    await runs.record_runs([event(run_id, "complete", user=user, at=day(1))])
    await runs.record_runs(
        [event(run_id, "enriching", user=user, at=day(2)), event(run_id, "failed", user=user, at=day(3))]
    )
    run = await runs.run(user, str(run_id))
    assert run is not None
    assert run.state == "complete"


async def test_batches_at_once_lose_no_event(runs: RunStore) -> None:
    user, ids = f"user-{uuid4()}", [uuid4() for _ in range(5)]
    names = [f"stage-{number}" for number in range(6)]
    batches = [
        [event(id_, "enriching", user=user, stage=report(name, "succeeded", NOON)) for id_ in ids] for name in names
    ]
    for batch in batches:
        random.Random(len(batch)).shuffle(batch)
    await asyncio.gather(*(runs.record_runs(batch) for batch in batches))
    for id_ in ids:
        run = await runs.run(user, str(id_))
        assert run is not None
        assert {one["stage"] for one in run.stages} == set(names)


async def test_nobody_sees_or_changes_the_run_of_another(runs: RunStore) -> None:
    mine, theirs, run_id = f"user-{uuid4()}", f"user-{uuid4()}", uuid4()
    await runs.record_runs([event(run_id, "accepted", user=mine)])
    assert await runs.run(theirs, str(run_id)) is None
    await runs.record_runs([event(run_id, "failed", user=theirs, error="mischief")])
    run = await runs.run(mine, str(run_id))
    assert run is not None
    assert (run.state, run.error) == ("accepted", "")
    assert [one.user_id for one in (await runs.runs(mine))[0]] == [mine]


async def test_an_unknown_run_is_none(runs: RunStore) -> None:
    assert await runs.run("nobody", str(uuid4())) is None
    assert await runs.run("nobody", "no id at all") is None
    assert await runs.runs(f"user-{uuid4()}") == ([], "")


async def test_pages_give_every_run_once_newest_first(runs: RunStore) -> None:
    user = f"user-{uuid4()}"
    events = [event(uuid4(), "accepted", user=user, accepted_at=day(number // 2)) for number in range(11)]
    await runs.record_runs(events)
    pages, cursor = [], ""
    while True:
        page, cursor = await runs.runs(user, before=cursor, limit=4)
        pages.append(page)
        if not cursor:
            break
    assert [len(page) for page in pages] == [4, 4, 3]
    seen = [run for page in pages for run in page]
    assert {run.run_id for run in seen} == {str(one.run_id) for one in events}
    assert [run.accepted_at for run in seen] == sorted((one.accepted_at for one in events), reverse=True)


async def test_a_full_last_page_has_no_cursor(runs: RunStore) -> None:
    user = f"user-{uuid4()}"
    await runs.record_runs([event(uuid4(), "accepted", user=user) for _ in range(4)])
    page, cursor = await runs.runs(user, limit=4)
    assert (len(page), cursor) == (4, "")


async def test_runs_are_filtered_by_dataset_and_state(runs: RunStore) -> None:
    user = f"user-{uuid4()}"
    await runs.record_runs(
        [
            event(uuid4(), "complete", user=user, dataset="home"),
            event(uuid4(), "failed", user=user, dataset="home"),
            event(uuid4(), "failed", user=user, dataset="work"),
        ]
    )
    assert len((await runs.runs(user, dataset="home"))[0]) == 2
    assert len((await runs.runs(user, state="failed"))[0]) == 2
    (only,) = (await runs.runs(user, dataset="work", state="failed"))[0]
    assert only.dataset == "work"
    assert (await runs.runs(user, dataset="nowhere"))[0] == []


@pytest.mark.parametrize("cursor", ["x", "not a cursor", "MjAyNQ", "é", "%%%%", "A" * 5000])
async def test_a_cursor_that_is_none_is_refused(runs: RunStore, cursor: str) -> None:
    with pytest.raises(Refused):
        await runs.runs("anybody", before=cursor)


async def test_no_events_are_no_work(runs: RunStore) -> None:
    await runs.record_runs([])
