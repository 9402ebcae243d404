"""POST /v1/remember and what it leaves on the log, on a real HTTP server over a log in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from strandline.client import Client
from strandline.requests import RememberBody
from tests.doubles.server import AT, Bench, eventually, running
from topics import ids
from topics.errors import Outage, Refused
from topics.records import RememberRequest, RunEvent

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with running() as bench:
        yield bench


def body(**fields: object) -> RememberBody:
    return RememberBody.model_validate({"user_id": "ada", "text": "Ada works at Acme."} | fields)


async def test_a_text_is_on_the_log_with_its_accepted_event_before_the_answer(bench: Bench) -> None:
    receipt = await bench.client.remember(body(title="News", tags=["work"], idempotency_key="k-1"))
    (request,), (event,) = bench.log.records("remember.requests"), bench.log.records("remember.runs")
    assert isinstance(request, RememberRequest)
    assert isinstance(event, RunEvent)
    assert (receipt.status, receipt.durable, receipt.queryable) == ("accepted", True, False)
    assert (receipt.idempotency_key, receipt.fact_ids, receipt.artifact_id) == ("k-1", (), None)
    assert (request.text, request.title, request.tags, request.source_type) == (
        "Ada works at Acme.",
        "News",
        ("work",),
        "api",
    )
    assert (request.reference_time, request.accepted_at) == (AT, AT)
    assert request.run_id == event.run_id == receipt.run_id
    assert event.state == "accepted"
    headers = dict(bench.log.raw("remember.runs")[0].headers)
    assert headers["ce_id"].decode() == str(ids.run_event_id(receipt.run_id, "api", "accepted"))


async def test_the_callers_trace_goes_on_in_the_records_and_the_answer(bench: Bench) -> None:
    async with bench.http.post(
        "/v1/remember", json={"user_id": "ada", "text": "x"}, headers={"traceparent": TRACE}
    ) as answer:
        assert answer.status == 202
        told = answer.headers["traceparent"]
    sent = {
        incoming.traceparent for topic in ("remember.requests", "remember.runs") for incoming in bench.log.raw(topic)
    }
    assert len(sent) == 1
    assert {one.split("-")[1] for one in sent | {told}} == {TRACE.split("-")[1]}
    assert TRACE not in sent | {told}


async def test_the_same_request_under_the_same_key_is_one_run(bench: Bench) -> None:
    receipts = await asyncio.gather(*(bench.client.remember(body(idempotency_key="k")) for _ in range(20)))
    assert len({receipt.run_id for receipt in receipts}) == 1
    assert len({dict(one.headers)["ce_id"] for one in bench.log.raw("remember.requests")}) == 1


async def test_a_field_set_to_its_default_asks_for_the_same(bench: Bench) -> None:
    first = await bench.client.remember(body(idempotency_key="k"))
    async with bench.http.post(
        "/v1/remember", json={"user_id": "ada", "text": "Ada works at Acme.", "dataset": "main", "idempotency_key": "k"}
    ) as answer:
        assert (await answer.json())["run_id"] == str(first.run_id)


@pytest.mark.parametrize("change", [{"text": "Else."}, {"tags": ["other"]}, {"title": "t"}, {"author": "Bob"}])
async def test_another_request_under_a_used_key_is_another_run(bench: Bench, change: dict[str, object]) -> None:
    first = await bench.client.remember(body(idempotency_key="k"))
    assert (await bench.client.remember(body(idempotency_key="k", **change))).run_id != first.run_id


async def test_without_a_key_one_is_made_and_a_retry_with_it_is_the_same_run(bench: Bench) -> None:
    first = await bench.client.remember(body())
    assert (await bench.client.remember(body(idempotency_key=first.idempotency_key))).run_id == first.run_id
    assert (await bench.client.remember(body())).run_id != first.run_id


async def test_waiting_for_queryable_answers_200_once_it_is(bench: Bench) -> None:
    waiting = asyncio.create_task(bench.client.remember(body(idempotency_key="k"), wait="queryable"))
    await bench.feed.started(timedelta(seconds=5))
    run_id = ids.run_id(body().key, "api", "k", body().request_hash())
    with bench.feed.watch(run_id) as watch:
        while bench.feed.latest(str(run_id)) is None:
            await watch.changed.wait()
    assert not waiting.done()
    await bench.tell(await bench.requested(run_id), "queryable")
    receipt = await waiting
    assert (receipt.status, receipt.queryable, receipt.seq) == ("queryable", True, 1)


async def test_a_deadline_that_passes_answers_202_with_the_state_so_far(bench: Bench) -> None:
    async with bench.http.post(
        "/v1/remember?wait=complete&deadline_ms=50", json={"user_id": "ada", "text": "x"}
    ) as answer:
        assert (answer.status, (await answer.json())["status"]) == (202, "accepted")


@pytest.mark.parametrize(
    ("state", "wait", "status"),
    [
        ("queryable", "queryable", 200),
        ("enriching", "queryable", 200),
        ("complete", "complete", 200),
        ("rejected", "complete", 422),
        ("rejected", "queryable", 422),
        ("failed", "complete", 502),
        ("failed", "queryable", 200),
    ],
)
async def test_the_status_tells_whether_the_wait_was_met(bench: Bench, state: str, wait: str, status: int) -> None:
    first = await bench.client.remember(body(idempotency_key="k"))
    ended = state in ("failed", "rejected")
    await bench.tell(await bench.requested(first.run_id), state, error="no luck" if ended else "")  # type: ignore[arg-type]
    sent = body(idempotency_key="k").model_dump(mode="json", exclude_defaults=True)
    async with bench.http.post(f"/v1/remember?wait={wait}", json=sent) as answer:
        told = await answer.json()
    assert answer.status == status
    if status >= 400:
        assert (told["error"], told["code"], told["receipt"]["status"]) == ("no luck", "conflict", state)
    else:
        assert told["status"] == state


async def test_a_rejected_run_is_never_shown_as_accepted_again(bench: Bench) -> None:
    first = await bench.client.remember(body(idempotency_key="k"))
    await bench.tell(await bench.requested(first.run_id), "rejected", error="the key is used")
    await bench.feed.wait(first.run_id, until="complete", deadline=timedelta(seconds=5))
    again = await bench.client.remember(body(idempotency_key="k"))
    assert (again.status, again.error, again.error_code) == ("rejected", "the key is used", "conflict")


async def test_a_wait_asks_the_store_once_more_before_its_deadline_passes(bench: Bench) -> None:
    waiting = asyncio.create_task(
        bench.client.remember(body(idempotency_key="k"), wait="complete", deadline=timedelta(seconds=2))
    )
    await eventually(lambda: bench.log.records("remember.requests"))
    (request,) = bench.log.records("remember.requests")
    assert isinstance(request, RememberRequest)
    done = RunEvent(  # known to the store alone: the feed does not hear it
        user_id="ada",
        dataset="main",
        run_id=request.run_id,
        state="complete",
        at=AT + timedelta(seconds=3),
        accepted_at=AT,
        seq=1,
    )
    await bench.run_store.record_runs([done])
    assert (await waiting).status == "complete"


async def test_a_repeat_that_waits_learns_of_an_end_long_ago_from_the_store(bench: Bench) -> None:
    first = await bench.client.remember(body(idempotency_key="k"))
    await bench.tell(await bench.requested(first.run_id), "complete", "indexer")
    await bench.run_store.record_runs([e for e in bench.log.records("remember.runs") if isinstance(e, RunEvent)])
    async with running(log=bench.log) as later:
        later.run_store._runs = bench.run_store._runs
        receipt = await later.client.remember(body(idempotency_key="k"), wait="complete", deadline=timedelta(seconds=5))
    assert receipt.status == "complete"


async def test_while_the_log_is_away_nothing_is_accepted_and_the_key_to_repeat_with_is_told(bench: Bench) -> None:
    bench.log.away = True
    async with bench.http.post("/v1/remember", json={"user_id": "ada", "text": "x"}) as answer:
        told = await answer.json()
    assert (answer.status, told["code"], told["service"]) == (503, "outage", "kafka")
    assert int(answer.headers["Retry-After"]) >= 1
    assert told["idempotency_key"] in told["error"]
    with pytest.raises(Outage, match="the log is away"):
        await bench.client.remember(body())
    assert bench.log.size == 0
    bench.log.away = False
    assert (await bench.client.remember(body(idempotency_key=told["idempotency_key"]))).status == "accepted"


async def test_while_the_graph_is_away_texts_are_accepted_and_their_runs_told(bench: Bench) -> None:
    bench.run_store.away = True
    receipt = await bench.client.remember(body())
    assert (await bench.client.run("ada", receipt.run_id)).status == "accepted"
    with pytest.raises(Outage) as told:
        await bench.client.runs("ada")
    assert told.value.service == "neo4j"


async def test_a_deadline_over_the_servers_limit_is_refused_before_anything_is_sent(bench: Bench) -> None:
    with pytest.raises(Refused) as refused:
        await bench.client.remember(body(), wait="complete", deadline=timedelta(minutes=5))
    assert refused.value.field == "deadline_ms"
    assert bench.log.size == 0


async def test_no_server_is_an_outage_with_a_way_out() -> None:
    async with Client("http://127.0.0.1:9") as client:
        with pytest.raises(Outage, match="strandline serve"):
            await client.remember(body())


async def test_the_client_sends_the_largest_text(bench: Bench) -> None:
    receipt = await bench.client.remember(body(text="é" * (1_048_576 // 2)))
    assert len((await bench.requested(receipt.run_id)).text.encode()) == 1_048_576
