"""Runs and their events over HTTP: what is found, in which order, and that a stream resumes without a gap or a double."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing
from datetime import timedelta
from uuid import UUID

import aiohttp
import pytest

from strandline.api.server import serving
from strandline.client import Client
from strandline.receipts import RunUpdate
from strandline.requests import RememberBody
from tests.doubles.server import Bench, eventually, running
from topics.errors import NotFound, Outage
from topics.records import RunEvent

UNKNOWN = UUID("6d4f7f0c-52a3-5c1e-9a52-0f6f6f9f7a11")


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with running() as bench:
        yield bench


def body(user_id: str = "ada", **fields: object) -> RememberBody:
    return RememberBody.model_validate({"user_id": user_id, "text": "Ada works at Acme."} | fields)


async def stored(bench: Bench) -> None:
    await bench.run_store.record_runs([one for one in bench.log.records("remember.runs") if isinstance(one, RunEvent)])


async def read(
    bench: Bench, count: int, *, user: str = "ada", dataset: str | None = None, after: str | None = None
) -> list[tuple[str, RunUpdate]]:
    """So many (token, update) pairs of a stream, then leaves it."""
    found: list[tuple[str, RunUpdate]] = []
    async with asyncio.timeout(10), aclosing(bench.client.events(user, dataset=dataset, after=after)) as events:
        async for pair in events:
            found.append(pair)
            if len(found) == count:
                return found
    raise AssertionError("unreachable")


async def start_token(bench: Bench, user: str = "ada") -> str:
    """The token that a new stream begins with."""
    async with bench.http.get("/v1/events", params={"user_id": user}) as answer:
        async for line in answer.content:
            if line.startswith(b"id: "):
                return line[4:].strip().decode()
    raise AssertionError("the stream ended without a token")


async def test_a_run_is_found_right_after_its_receipt(bench: Bench) -> None:
    for _ in range(20):
        receipt = await bench.client.remember(body())
        run = await bench.client.run("ada", receipt.run_id)
        assert (run.run_id, run.status, run.idempotency_key) == (receipt.run_id, "accepted", receipt.idempotency_key)


async def test_a_run_is_found_at_another_process_right_after_its_receipt(bench: Bench) -> None:
    async with running(log=bench.log) as other:
        await other.feed.started(timedelta(seconds=5))
        for _ in range(20):
            receipt = await bench.client.remember(body())
            assert (await other.client.run("ada", receipt.run_id)).status == "accepted"


async def test_a_run_tells_the_furthest_of_feed_and_store_with_all_stages(bench: Bench) -> None:
    receipt = await bench.client.remember(body())
    request = await bench.requested(receipt.run_id)
    await bench.tell(request, "queryable", "intake")
    await bench.tell(request, "enriching", "writer")
    await stored(bench)
    await bench.tell(request, "complete", "indexer")
    async with running(log=bench.log) as later:  # its feed begins here, the store has the rest
        later.run_store._runs = bench.run_store._runs
        await later.feed.started(timedelta(seconds=5))
        await bench.tell(request, "complete", "indexer")
        await later.feed.wait(receipt.run_id, until="complete", deadline=timedelta(seconds=5))
        run = await later.client.run("ada", receipt.run_id)
    assert run.status == "complete"
    assert [stage.stage for stage in run.stages] == ["intake", "writer", "indexer"]


async def test_a_run_of_another_user_looks_like_none(bench: Bench) -> None:
    receipt = await bench.client.remember(body())
    messages = []
    for run_id in (receipt.run_id, UNKNOWN):
        with pytest.raises(NotFound) as told:
            await bench.client.run("eve", run_id)
        messages.append(str(told.value).replace(str(run_id), "…"))
    assert messages[0] == messages[1]


async def test_runs_come_newest_first_in_pages_that_fit_together(bench: Bench) -> None:
    sent = []
    for _ in range(7):
        bench.clock.advance(timedelta(seconds=1))
        sent.append((await bench.client.remember(body())).run_id)
    await bench.client.remember(body("bob"))
    await stored(bench)
    seen, cursor = [], ""
    while True:
        page = await bench.client.runs("ada", cursor=cursor, limit=3)
        seen += [run.run_id for run in page.runs]
        cursor = page.next_cursor
        if not cursor:
            break
    assert seen == sent[::-1]
    assert (await bench.client.runs("nobody")).runs == ()


async def test_runs_are_filtered_by_dataset_and_state(bench: Bench) -> None:
    first = await bench.client.remember(body(dataset="work"))
    await bench.client.remember(body())
    await bench.tell(await bench.requested(first.run_id), "complete", "indexer")
    await stored(bench)
    assert [run.run_id for run in (await bench.client.runs("ada", dataset="work")).runs] == [first.run_id]
    assert [run.run_id for run in (await bench.client.runs("ada", state="complete")).runs] == [first.run_id]


async def test_a_stream_has_this_users_events_and_nobody_elses(bench: Bench) -> None:
    token = await start_token(bench)
    await bench.client.remember(body("eve"))
    mine = await bench.client.remember(body(dataset="work"))
    await bench.client.remember(body("eve"))
    other = await bench.client.remember(body())
    assert {update.run_id for _, update in await read(bench, 2, after=token)} == {mine.run_id, other.run_id}
    ((_, only),) = await read(bench, 1, dataset="work", after=token)
    assert only.run_id == mine.run_id


@pytest.mark.parametrize("datasets", [1, 9])
async def test_a_stream_resumed_again_and_again_misses_nothing_and_repeats_nothing(bench: Bench, datasets: int) -> None:
    token = await start_token(bench)
    sent = [(await bench.client.remember(body(dataset=f"d{number % datasets}"))).run_id for number in range(40)]
    seen: list[RunUpdate] = []
    async with running(log=bench.log) as other:  # whose memory has none of it
        for number in range(10):
            pairs = await read((bench, other)[number % 2], 4, after=token)
            token = pairs[-1][0]
            seen += [update for _, update in pairs]
    assert len({update.event_id for update in seen}) == len(seen) == 40
    assert {update.run_id for update in seen} == set(sent)
    for number in range(datasets):
        mine = [update.run_id for update in seen if update.dataset == f"d{number}"]
        assert mine == sent[number::datasets]
    assert bench.log.followers <= 2


async def test_the_token_moves_on_past_the_events_of_others(bench: Bench) -> None:
    async with asyncio.timeout(10), aclosing(bench.feed.stream("ada", heartbeat=timedelta(milliseconds=50))) as stream:
        first = await anext(stream)
        for _ in range(5):
            await bench.client.remember(body("eve"))
        later = await anext(stream)
        while later.token == first.token:
            later = await anext(stream)
        assert later.update is None


async def test_a_heartbeat_comes_first_so_that_a_silent_stream_can_be_resumed(bench: Bench) -> None:
    async with bench.http.get("/v1/events", params={"user_id": "ada"}) as answer:
        assert answer.content_type == "text/event-stream"
        assert answer.headers["Cache-Control"] == "no-store"
        head = [await answer.content.readline() for _ in range(4)]
    assert head[0].startswith(b"retry: ")
    assert head[1].startswith(b":")
    assert head[2].startswith(b"id: ")
    assert head[3] == b"\n"


async def test_the_client_tells_once_that_its_stream_is_connected(bench: Bench) -> None:
    told: list[bool] = []
    async with aclosing(bench.client.events("ada", connected=lambda: told.append(True))) as events:
        reading = asyncio.ensure_future(anext(events))
        assert not told
        await eventually(lambda: told)
        await bench.client.remember(body())
        async with asyncio.timeout(10):
            await reading
    assert told == [True]


async def test_the_client_goes_on_by_itself_when_the_server_ends_the_stream(bench: Bench) -> None:
    async with aclosing(bench.client.events("ada")) as events:
        reading = asyncio.ensure_future(anext(events))
        await eventually(lambda: bench.feed._subscriptions)
        for subscription in tuple(bench.feed._subscriptions):
            subscription.end()
        receipt = await bench.client.remember(body())
        async with asyncio.timeout(10):
            _, update = await reading
    assert update.run_id == receipt.run_id


async def test_a_stream_cannot_begin_while_the_log_is_away() -> None:
    async with running() as bench:
        bench.log.away = True
        bench.feed._begun.clear()
        with pytest.raises(Outage) as told:
            await read(bench, 1)
        assert told.value.service == "kafka"


async def test_a_server_that_ends_finishes_its_answers_and_ends_streams_and_waits(bench: Bench) -> None:
    async with AsyncExitStack() as ending:
        listening = await ending.enter_async_context(serving(bench.memory, grace=timedelta(seconds=10)))
        async with Client(listening.url) as client, aiohttp.ClientSession(listening.url) as http:
            waiting = asyncio.create_task(client.remember(body(), wait="complete"))
            stream = await http.get("/v1/events", params={"user_id": "ada"})
            reading = asyncio.create_task(stream.read())
            await eventually(lambda: bench.log.size)
            async with asyncio.timeout(5):
                await ending.aclose()
                assert (await waiting).status == "accepted"
                assert b"id: " in await reading
            with pytest.raises(Outage, match="no server at"):
                await client.health()


async def test_live_ready_and_health_tell_what_each_is_for(bench: Bench) -> None:
    bench.run_store.away = True
    async with bench.http.get("/live") as live, bench.http.get("/ready") as ready:
        assert (live.status, ready.status) == (200, 200)
    health = await bench.client.health()
    assert health.status == "degraded"
    assert {part.name: part.ok for part in health.parts} == {"kafka": True, "neo4j": False}


async def test_without_the_log_the_server_lives_but_is_not_ready(bench: Bench) -> None:
    bench.log.away = True
    async with bench.http.get("/live") as live, bench.http.get("/ready") as ready:
        assert live.status == 200
        assert (ready.status, (await ready.json())["service"]) == (503, "kafka")


async def test_measures_have_help_and_the_routes_not_the_paths(bench: Bench) -> None:
    receipt = await bench.client.remember(body())
    await bench.client.run("ada", receipt.run_id)
    async with bench.http.get("/metrics") as answer:
        page = await answer.text()
    assert "strandline_http_accepted_requests_total 1.0" in page
    assert 'route="/v1/runs/{run_id}"' in page
    assert str(receipt.run_id) not in page
    assert "ada" not in page
