"""The run feed on a log in memory: waiting, forgetting, streams from memory and from further back, slow readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline import run_feed
from strandline.run_feed import RunFeed
from strandline.run_streams import Message, user_keys
from strandline.run_tokens import PARTITIONS, decode_token, encode_token
from tests.doubles.memory_log import MemoryLog
from tests.doubles.server import eventually
from topics.codec import decode
from topics.envelope import Incoming, Outgoing
from topics.errors import Outage, Refused, Retryable
from topics.keys import DatasetKey, derived_id
from topics.records import Record, RunEvent, RunState, StageReport

AT = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
SOON = timedelta(seconds=5)
STATES: tuple[RunState, ...] = ("accepted", "queryable", "enriching", "complete", "failed", "rejected")


def event(number: int, state: RunState = "accepted", *, user: str = "ada", stage: str = "") -> RunEvent:
    at = AT + timedelta(seconds=STATES.index(state))
    return RunEvent(
        user_id=user,
        dataset=f"d{number % 5}",
        run_id=derived_id("run", str(number)),
        state=state,
        at=at,
        accepted_at=AT,
        seq=None if state == "accepted" else max(1, number),
        stage=StageReport(stage=stage, state="succeeded", started_at=at, finished_at=at) if stage else None,
    )


async def send(log: MemoryLog, *events: RunEvent) -> None:
    for one in events:
        step = derived_id("step", str(one.run_id), one.state)
        await log.append([Outgoing("remember.runs", one, step, "test", one.at)])


async def take(stream: AsyncGenerator[Message, None], count: int) -> list[Message]:
    """So many messages with an event."""
    found: list[Message] = []
    async with asyncio.timeout(10):
        while len(found) < count:
            message = await anext(stream)
            if message.update is not None:
                found.append(message)
    return found


def runs(messages: list[Message]) -> list[UUID]:
    return [message.update.run_id for message in messages if message.update is not None]


async def test_a_wait_ends_when_its_state_or_a_later_one_is_reached() -> None:
    log = MemoryLog()
    async with RunFeed(log) as feed:
        await feed.started(SOON)
        with feed.watch(event(1).run_id) as watch:
            await send(log, event(1), event(1, "enriching"))
            view = await watch.until("queryable", SOON)
    assert view is not None
    assert (view.state, view.seq) == ("enriching", 1)


@pytest.mark.parametrize("state", ["failed", "rejected", "complete"])
@pytest.mark.parametrize("until", ["queryable", "complete"])
async def test_a_final_state_ends_every_wait(state: RunState, until: str) -> None:
    log = MemoryLog()
    async with RunFeed(log) as feed:
        await feed.started(SOON)
        with feed.watch(event(1).run_id) as watch:
            await send(log, event(1, state))
            view = await watch.until(until, SOON)  # type: ignore[arg-type]
    assert view is not None
    assert view.state == state


async def test_a_wait_whose_deadline_passes_tells_the_state_so_far() -> None:
    log = MemoryLog()
    async with RunFeed(log) as feed:
        await feed.started(SOON)
        assert await feed.wait(event(1).run_id, until="complete", deadline=timedelta(milliseconds=10)) is None
        await send(log, event(1, "queryable"))
        view = await feed.wait(event(1).run_id, until="complete", deadline=timedelta(milliseconds=200))
        assert view is not None
        assert view.state == "queryable"


async def test_old_runs_are_forgotten_but_never_one_that_is_waited_for() -> None:
    log = MemoryLog()
    async with RunFeed(log, runs_kept=10) as feed:
        await feed.started(SOON)
        with feed.watch(event(0).run_id) as watch:
            await send(log, *(event(number) for number in range(100)))
            await feed.caught_up(SOON)
            assert feed.latest(str(event(0).run_id)) is not None
            assert feed.latest(str(event(1).run_id)) is None
            await send(log, event(0, "complete"))
            view = await watch.until("complete", SOON)
            assert view is not None
            assert view.state == "complete"
        assert len(feed._runs) <= 11


async def test_the_feed_begins_and_goes_on_through_outages() -> None:
    log = MemoryLog()
    log.away = True
    async with RunFeed(log) as feed:
        with pytest.raises(Outage):
            await feed.started(timedelta(milliseconds=20))
        log.away = False
        await feed.started(SOON)
        log.away = True
        with feed.watch(event(1).run_id) as watch:
            log.away = False
            await send(log, event(1, "complete"))
            assert await watch.until("complete", SOON) is not None


async def test_a_record_that_cannot_be_read_holds_nothing_up() -> None:
    log = MemoryLog()
    async with RunFeed(log) as feed:
        await feed.started(SOON)
        await send(log, event(1))
        partition = log.raw("remember.runs")[0].partition
        kept = log._partitions["remember.runs"][partition]
        kept.append(type(kept[0])("remember.runs", partition, len(kept), b"nonsense", b"\xff"))
        await send(log, event(6, "complete"))  # the same dataset, hence behind it
        view = await feed.wait(event(6).run_id, until="complete", deadline=SOON)
        assert view is not None


async def test_a_reader_from_memory_needs_no_follower_of_its_own() -> None:
    log = MemoryLog()
    async with RunFeed(log) as feed:
        await feed.started(SOON)
        async with aclosing(feed.stream("ada")) as stream:
            token = (await anext(stream)).token
        sent = [event(number) for number in range(20)]
        await send(log, *sent)
        async with aclosing(feed.stream("ada", after=token)) as stream:
            found = await take(stream, 20)
            assert log.followers == 1
    assert set(runs(found)) == {one.run_id for one in sent}


async def test_a_reader_from_further_back_gets_a_follower_until_it_has_caught_up() -> None:
    log = MemoryLog()
    sent = [event(number) for number in range(50)]
    async with RunFeed(log, events_kept=10) as feed:
        await feed.started(SOON)
        async with aclosing(feed.stream("ada")) as stream:
            token = (await anext(stream)).token
        await send(log, *sent)
        await feed.caught_up(SOON)
        async with aclosing(feed.stream("ada", after=token)) as stream:
            found = await take(stream, 50)
            live = event(77)
            await send(log, live)
            assert runs(await take(stream, 1)) == [live.run_id]
            await eventually(lambda: log.followers == 1)
    assert sorted(runs(found)) == sorted(one.run_id for one in sent)
    assert not feed._heard_at


async def test_too_many_readers_from_further_back_are_told_to_come_again() -> None:
    log = MemoryLog()
    async with RunFeed(log, events_kept=1, own_followers=0) as feed:
        await feed.started(SOON)
        token = encode_token(log.log_id, (0,) * PARTITIONS)
        await send(log, *(event(number) for number in range(10)))
        await feed.caught_up(SOON)
        with pytest.raises(Retryable, match="catching up"):
            await anext(feed.stream("ada", after=token))


async def test_a_follower_that_only_waits_takes_nobodys_place(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    async with RunFeed(log, own_followers=1) as feed:
        await feed.started(SOON)
        feed._kept_from = [1] * PARTITIONS  # all before has passed its retention: nothing will come of it
        token = encode_token(log.log_id, (0,) * PARTITIONS)
        async with (
            aclosing(feed.stream("ada", after=token)) as first,
            aclosing(feed.stream("bob", after=token)) as second,
        ):
            await anext(first)
            with pytest.raises(Retryable, match="catching up"):
                await anext(feed.stream("bob", after=token))
            await eventually(lambda: log.followers == 2)
            monkeypatch.setattr(run_feed, "_IDLE", timedelta(0))
            assert (await anext(second)).update is None


async def test_a_reader_that_does_not_keep_up_is_ended_and_misses_nothing_when_it_resumes() -> None:
    log = MemoryLog()
    sent = [event(number) for number in range(100)]
    async with RunFeed(log, events_kept=10) as feed:
        await feed.started(SOON)
        found: list[Message] = []
        async with aclosing(feed.stream("ada")) as stream:
            last = await anext(stream)
            await send(log, *sent[:10])
            found += await take(stream, 3)
            await send(log, *sent[10:])
            await feed.caught_up(SOON)
            async for message in stream:
                found.append(message)
        last = found[-1] if found else last
        assert len(found) < 100
        async with aclosing(feed.stream("ada", after=last.token)) as stream:
            found += await take(stream, 100 - len(runs(found)))
    assert sorted(runs(found)) == sorted(one.run_id for one in sent)


async def test_a_token_of_another_log_begins_at_what_this_one_keeps() -> None:
    log = MemoryLog("second")
    await send(log, event(1))
    async with RunFeed(log) as feed:
        token = encode_token("first", (10**9,) * PARTITIONS)
        async with aclosing(feed.stream("ada", after=token)) as stream:
            assert runs(await take(stream, 1)) == [event(1).run_id]


async def test_a_token_beyond_the_ends_begins_at_what_the_topic_keeps() -> None:
    log = MemoryLog()
    await send(log, event(1))
    async with RunFeed(log) as feed:
        token = encode_token(log.log_id, (2**62,) * PARTITIONS)
        async with aclosing(feed.stream("ada", after=token)) as stream:
            assert runs(await take(stream, 1)) == [event(1).run_id]


async def test_a_token_of_a_process_that_is_ahead_is_taken_as_it_is() -> None:
    log = MemoryLog()
    async with RunFeed(log) as feed:
        await feed.started(SOON)
        await send(log, event(1))
        found = await log.ends("remember.runs")
        ends = tuple(found[partition] for partition in range(PARTITIONS))
        feed._positions = [0] * PARTITIONS
        assert await feed._place_of(encode_token(log.log_id, ends), log.log_id) == ends


async def test_history_of_others_is_passed_over_without_being_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    await send(log, *(event(number, user=("bob", 'ada",x', "adam")[number % 3]) for number in range(60)), event(77))
    async with RunFeed(log) as feed:
        await feed.started(SOON)
        decoded: list[Incoming] = []

        def decode_and_note(incoming: Incoming) -> Record:
            decoded.append(incoming)
            return decode(incoming)

        monkeypatch.setattr(run_feed, "decode", decode_and_note)
        async with aclosing(feed.stream("ada", after=encode_token(log.log_id, (0,) * PARTITIONS))) as stream:
            assert runs(await take(stream, 1)) == [event(77).run_id]
            await eventually(lambda: log.followers == 1)
    assert len(decoded) == 1


@given(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8))
def test_the_beginning_of_a_users_keys_is_that_users_alone(user: str, other: str, dataset: str) -> None:
    assert DatasetKey(other, dataset).encode().startswith(user_keys(user)) is (user == other)


async def test_one_who_reads_history_lets_the_others_work_meanwhile() -> None:
    log = MemoryLog()
    await send(log, *(event(number, user="bob") for number in range(2000)), event(7))
    async with RunFeed(log) as feed:
        await feed.started(SOON)
        turns = 0

        async def work() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with aclosing(feed.stream("ada", after=encode_token(log.log_id, (0,) * PARTITIONS))) as stream:
            await anext(stream)
            worker = asyncio.create_task(work())
            await take(stream, 1)
            worker.cancel()
    assert turns >= 5


async def test_a_topic_that_was_made_anew_is_followed_from_its_beginning() -> None:
    log = MemoryLog()
    async with RunFeed(log) as feed:
        await feed.started(SOON)
        async with aclosing(feed.stream("ada")) as stream:
            await anext(stream)
            await send(log, *(event(number) for number in range(50)))
            token = (await take(stream, 50))[-1].token
            log.make_anew("remember.runs")
            with feed.watch(event(3).run_id) as watch:
                await send(log, event(3, "complete"))
                view = await watch.until("complete", SOON)
            assert view is not None
            assert view.state == "complete"
            assert [message async for message in stream] == []
        await send(log, event(4, "complete"))
        async with aclosing(feed.stream("ada", after=token)) as stream:
            assert set(runs(await take(stream, 2))) == {event(3).run_id, event(4).run_id}


@given(st.lists(st.integers(0, 2**63 - 1), min_size=PARTITIONS, max_size=PARTITIONS), st.text(max_size=20))
def test_a_token_says_where_a_reader_is(vector: list[int], log_id: str) -> None:
    assert decode_token(encode_token(log_id, vector), log_id) == tuple(vector)


@given(st.one_of(st.text(max_size=80), st.binary(max_size=60).map(lambda raw: raw.hex())))
def test_any_text_is_a_token_or_refused(text: str) -> None:
    with suppress(Refused):
        assert len(decode_token(text, "log")) == PARTITIONS
