"""The HTTP API on the real log: acceptance, waits, streams across servers, and a broker that is killed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest

from strandline.api.models import SearchPage
from strandline.api.server import serving
from strandline.client import Client
from strandline.health import HealthCheck
from strandline.memory import Memory
from strandline.receipts import Receipt, RunUpdate
from strandline.requests import RememberBody, SearchBody
from strandline.run_feed import RunFeed
from strandline.stack import NativeStack
from tests.doubles.run_store import MemoryRunStore
from tests.kafka_topics import own_prefix
from tests.run_events import FROM_THE_START, take
from tests.services import native_stack
from topics import ids
from topics.codec import decode
from topics.envelope import Outgoing
from topics.errors import NotFound, Outage
from topics.kafka.admin import administering, ensure_topics
from topics.kafka.log import KafkaLog
from topics.records import RememberRequest, RunEvent, RunState
from topics.registry import TOPICS

pytestmark = [pytest.mark.connected, pytest.mark.timeout(300)]


@dataclass
class Server:
    log: KafkaLog
    feed: RunFeed
    http: aiohttp.ClientSession
    client: Client


@pytest.fixture(scope="module")
def stack() -> Iterator[NativeStack]:
    with native_stack() as own:
        own.up(("kafka",))
        yield own


@pytest.fixture
async def prefix(stack: NativeStack) -> AsyncIterator[str]:
    bootstrap = stack.addresses.kafka_bootstrap
    async with own_prefix(bootstrap) as found:
        await ensure_topics(bootstrap, TOPICS, replication=1, prefix=found)
        yield found
        await asyncio.to_thread(stack.start, "kafka")


@asynccontextmanager
async def server(
    stack: NativeStack, prefix: str, *, deadline: timedelta = timedelta(seconds=10)
) -> AsyncIterator[Server]:
    async def find(body: SearchBody) -> SearchPage:
        raise NotFound("nothing is remembered here")

    async with KafkaLog(stack.addresses.kafka_bootstrap, prefix=prefix, deadline=deadline) as log, RunFeed(log) as feed:
        memory = Memory(log, feed, MemoryRunStore(), find, HealthCheck({"kafka": lambda: log.ends("remember.runs")}))
        async with (
            serving(memory) as listening,
            aiohttp.ClientSession(listening.url) as http,
            Client(listening.url) as client,
        ):
            await feed.started(timedelta(seconds=30))
            yield Server(log, feed, http, client)


def body(number: int = 0, dataset: str = "main", **fields: object) -> RememberBody:
    return RememberBody.model_validate({"user_id": "ada", "dataset": dataset, "text": f"Text {number}."} | fields)


async def tell(log: KafkaLog, receipt: Receipt, sent: RememberBody, state: RunState) -> None:
    """What a worker would say of the run."""
    now = datetime.now(UTC)
    event = RunEvent(
        user_id=sent.user_id, dataset=sent.dataset, run_id=receipt.run_id, state=state, at=now, accepted_at=now, seq=1
    )
    await log.append([Outgoing("remember.runs", event, ids.run_event_id(receipt.run_id, "test", state), "test", now)])


async def test_accepted_is_on_the_log_and_found_at_every_server_at_once(stack: NativeStack, prefix: str) -> None:
    async with server(stack, prefix) as one, server(stack, prefix) as other:
        for number in range(20):
            receipt = await one.client.remember(body(number))
            run = await (one, other)[number % 2].client.run("ada", receipt.run_id)
            assert (run.run_id, run.status) == (receipt.run_id, "accepted")
        assert len(await take(one.log, 20, topic="remember.requests")) == 20


async def test_a_wait_at_one_server_ends_by_what_happens_elsewhere(stack: NativeStack, prefix: str) -> None:
    async with server(stack, prefix) as one, server(stack, prefix) as other:
        sent = body(idempotency_key="k")
        waiting = asyncio.create_task(one.client.remember(sent, wait="complete", deadline=timedelta(seconds=30)))
        first = await other.client.remember(sent, wait="queryable", deadline=timedelta(milliseconds=500))
        assert first.status == "accepted"
        await tell(other.log, first, sent, "complete")
        receipt = await waiting
    assert (receipt.run_id, receipt.status) == (first.run_id, "complete")


async def test_a_stream_handed_from_server_to_server_has_each_event_once_and_in_order(
    stack: NativeStack, prefix: str
) -> None:
    async with server(stack, prefix) as one:
        async with aclosing(one.feed.stream("ada")) as stream:
            token = (await anext(stream)).token
        sent = {number: await one.client.remember(body(number, f"d{number % 7}")) for number in range(60)}
        seen: list[RunUpdate] = []
        for _ in range(3):  # each has begun after the events: nothing of them is in its memory
            async with server(stack, prefix) as other:
                for reader in (one, other):
                    async with asyncio.timeout(60), aclosing(reader.client.events("ada", after=token)) as events:
                        for _ in range(10):
                            token, update = await anext(events)
                            seen.append(update)
    assert len({update.event_id for update in seen}) == len(seen) == 60
    for number in range(7):
        mine = [update.run_id for update in seen if update.dataset == f"d{number}"]
        assert mine == [sent[one].run_id for one in range(number, 60, 7)]


async def test_a_killed_broker_is_503_and_then_all_goes_on_by_itself(stack: NativeStack, prefix: str) -> None:
    async with server(stack, prefix, deadline=timedelta(seconds=2)) as one:
        places: set[str] = set()

        async def watch() -> None:
            async for place, _ in one.client.events("ada"):
                assert place not in places, "a record of the log was told twice"
                places.add(place)

        async with aclosing(one.feed.stream("ada")) as stream:
            token = (await anext(stream)).token
        watching = asyncio.create_task(watch())
        before = await one.client.remember(body(1))

        await asyncio.to_thread(stack.kill, "kafka")
        async with one.http.post("/v1/remember", json={"user_id": "ada", "text": "lost?"}) as answer:
            told = await answer.json()
        assert (answer.status, told["code"], told["service"]) == (503, "outage", "kafka")
        assert int(answer.headers["Retry-After"]) >= 1
        async with one.http.get("/live") as live, one.http.get("/ready") as ready:
            assert (live.status, ready.status) == (200, 503)
        assert (await one.client.health()).status == "degraded"
        with pytest.raises(Outage):
            await one.client.remember(body(2))
        # What was accepted before is still told.
        assert (await one.client.run("ada", before.run_id)).status == "accepted"

        await asyncio.to_thread(stack.start, "kafka")
        again = RememberBody(user_id="ada", text="lost?", idempotency_key=told["idempotency_key"])
        async with asyncio.timeout(60):
            while True:
                try:
                    receipt = await one.client.remember(again)
                    break
                except Outage:
                    continue
        waiting = asyncio.create_task(one.client.remember(again, wait="complete", deadline=timedelta(seconds=30)))
        await tell(one.log, receipt, again, "complete")
        assert (await waiting).status == "complete"
        async with asyncio.timeout(30):
            async with aclosing(one.client.events("ada", after=token)) as events:
                async for _, update in events:
                    if (update.run_id, update.state) == (receipt.run_id, "complete"):
                        break
        watching.cancel()
        (ended,) = await asyncio.gather(watching, return_exceptions=True)
        assert isinstance(ended, asyncio.CancelledError)
        on_log = sum((await one.log.ends("remember.requests")).values())
        records = await take(one.log, on_log, FROM_THE_START, topic="remember.requests")
    # However often the same request was sent, it is one run.
    requests = [record for record in map(decode, records) if isinstance(record, RememberRequest)]
    assert {request.run_id for request in requests if request.text == "lost?"} == {receipt.run_id}


async def test_a_server_follows_a_topic_that_was_deleted_and_made_again(stack: NativeStack, prefix: str) -> None:
    bootstrap = stack.addresses.kafka_bootstrap
    async with server(stack, prefix) as one:
        sent = body(idempotency_key="k")
        first = await one.client.remember(sent)
        for number in range(20):
            await one.client.remember(body(number))
        await one.feed.caught_up(timedelta(seconds=30))
        async with administering(bootstrap) as client:
            await client.delete_topics([f"{prefix}remember.runs"])
        await ensure_topics(bootstrap, TOPICS, replication=1, prefix=prefix)
        async with server(stack, prefix) as other:
            await tell(other.log, first, sent, "complete")
        view = await one.feed.wait(first.run_id, until="complete", deadline=timedelta(seconds=90))
    assert view is not None
    assert view.state == "complete"
