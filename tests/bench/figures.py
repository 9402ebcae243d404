"""The figures of the design that can be measured here, one coroutine each. They print ratios and medians; nothing is asserted."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from agents.committers import COMMITTERS
from strandline.client import Client
from strandline.requests import RememberBody, SearchBody
from strandline.stack import NativeStack
from tests.bench.ground import Ground, ground, server
from topics.keys import DatasetKey


@dataclass(frozen=True)
class Figure:
    """One row of the table."""

    name: str
    target: str
    measured: str


def percentile(values: Sequence[float], share: float) -> float:
    """By nearest rank; NaN for none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


def milliseconds(values: Sequence[float]) -> str:
    ms = [value * 1000 for value in values]
    return f"p50 {percentile(ms, 0.5):.0f}, p99 {percentile(ms, 0.99):.0f} ms (n = {len(ms)})"


def _text(number: int) -> str:
    """Two facts, one of them of a one-valued relation: the size of the prototype's episodes."""
    return f"Build {number % 50} | has_status | version {number}\nAda | uses | tool {number % 100}"


def _rate(times: Sequence[float]) -> float:
    """Per second, over the middle 80 %: ramp and tail are not the steady state."""
    cut = len(times) // 10
    middle = times[cut : len(times) - cut] if len(times) >= 20 else times
    return (len(middle) - 1) / (middle[-1] - middle[0]) if len(middle) > 1 else float("nan")


async def steady(stack: NativeStack, *, datasets: int, count: int, offered: float, workers: int) -> list[Figure]:
    """Fed while it works, at a rate it cannot quite hold."""
    async with ground(stack, workers=workers, name=f"steady{datasets}") as here:
        before, begun = here.cpu(), asyncio.get_running_loop().time()
        counted = await here.metrics()
        runs = await _feed(here, f"steady{datasets}", datasets, count, offered)
        await here.watch.until(runs, "complete")
        used, seconds = here.cpu(), asyncio.get_running_loop().time() - begun
        rate = _rate(here.watch.reached(runs, "complete"))
        shares = ", ".join(f"{name} {(used[name] - before[name]) / seconds * 100:.0f} %" for name in used)
        groups = _groups(counted, await here.metrics(), count)
        per_text = sum(used[name] - before[name] for name in used) / count * 1000
    target = "≥ 200" if datasets > 1 else "≥ 150"
    label = f"{datasets} datasets" if datasets > 1 else "one dataset"
    return [
        Figure(f"episodes per second, {label}, steady (offered {offered:.0f}/s)", target, f"{rate:.0f}"),
        Figure(
            f"CPU of each process meanwhile, {label} (100 % = one core)", "–", f"{shares}; {per_text:.1f} ms a text"
        ),
        Figure(f"groups a text (plans a group, time of a group), {label}", "≤ 5 statements a turn", groups),
    ]


def _groups(before: dict[str, float], after: dict[str, float], texts: int) -> str:
    """Per committer: groups a text, plans a group, milliseconds a group."""
    told = []
    for name in COMMITTERS:
        label = f'{{committer="{name}"}}'

        def grown(metric: str, label: str = label) -> float:
            return after.get(metric + label, 0.0) - before.get(metric + label, 0.0)

        groups = grown("strandline_committer_groups_total")
        if groups:
            plans = grown("strandline_committer_plans_total") / groups
            ms = grown("strandline_committer_group_seconds_sum") / groups * 1000
            told.append(f"{name} {groups / texts:.2f} ({plans:.0f} plans, {ms:.0f} ms)")
    return ", ".join(told)


async def _feed(here: Ground, user: str, datasets: int, count: int, offered: float) -> list[str]:
    """A user of its own for each figure: a text that was remembered before would cost nothing."""
    loop = asyncio.get_running_loop()
    begun, runs, number = loop.time(), [], 0
    while number < count:
        due = min(count, int((loop.time() - begun) * offered) + 1)
        if due > number:
            batch = [here.request(DatasetKey(user, f"set-{n % datasets}"), n, _text(n)) for n in range(number, due)]
            runs += await here.send(batch)
            number = due
        await asyncio.sleep(0.005)
    return runs


async def backlog(stack: NativeStack, *, datasets: int, count: int, workers: int) -> list[Figure]:
    """All accepted before the first worker starts."""
    rate = await _work_off(stack, f"backlog{datasets}", "strandline", datasets=datasets, count=count, workers=workers)
    label = f"{datasets} datasets" if datasets > 1 else "one dataset"
    target = "≥ 350" if datasets > 1 else "≥ 250"
    return [Figure(f"episodes per second, {label}, from a backlog of {count}", target, f"{rate:.0f}")]


async def _work_off(stack: NativeStack, name: str, module: str, *, datasets: int, count: int, workers: int) -> float:
    """Texts per second from the first complete one to the last."""
    async with ground(stack, workers=workers, name=name, module=module) as here:
        for worker in here.workers:
            await worker.stop()
        requests = [here.request(DatasetKey(name, f"set-{n % datasets}"), n, _text(n)) for n in range(count)]
        runs = []
        for start in range(0, count, 500):
            runs += await here.send(requests[start : start + 500])
        for worker in here.workers:
            await worker.start()
        await here.watch.until(runs, "complete")
        done = here.watch.reached(runs, "complete")
    return count / (done[-1] - done[0])


async def hop(stack: NativeStack, *, count: int, workers: int) -> list[Figure]:
    """What the topic between extract and writer costs: the same backlog with both in one stage."""
    rates = []
    for name, module in (("hop", "strandline"), ("fused", "tests.bench.fused_worker")):
        rates.append(await _work_off(stack, name, module, datasets=64, count=count, workers=workers))
    return [
        Figure(
            "backlog of 64 datasets with extract in the writer's turn, against the hop",
            "–",
            f"{rates[1] / rates[0]:.2f} times ({rates[1]:.0f} against {rates[0]:.0f} a second)",
        )
    ]


async def slow_model(stack: NativeStack, *, datasets: int, count: int, target: str) -> list[Figure]:
    """A model that takes 200 ms a text."""
    async with ground(stack, workers=1, name=f"slow{datasets}", STRANDLINE_MODEL__LATENCY="PT0.2S") as here:
        runs = await _feed(here, f"slow{datasets}", datasets, count, 1000.0)
        await here.watch.until(runs, "complete")
        rate = _rate(here.watch.reached(runs, "complete"))
    label = f"{datasets} datasets" if datasets > 1 else "one dataset"
    return [Figure(f"episodes per second with a model of 200 ms, {label}", target, f"{rate:.0f}")]


async def latencies(stack: NativeStack) -> list[Figure]:
    """By HTTP, as a client sees them."""
    async with ground(stack, workers=1, name="latency") as here, server(here) as (client, _, _):
        idle: list[float] = []
        loop = asyncio.get_running_loop()
        for number in range(150):
            begun = loop.time()
            await client.remember(_body(number, "idle"), wait="queryable")
            idle.append(loop.time() - begun)
            await asyncio.sleep(0.03)
        accepted, runs, sent = await _open_loop(client, 100.0, 1500, "hundred")
        await here.watch.until(runs, "complete")
        hops = _hops(here, runs, sent)
        _, runs200, sent200 = await _open_loop(client, 200.0, 2000, "twohundred")
        await here.watch.until(runs200, "complete")
        under_load = [at - sent200[run] for run in runs200 if (at := here.watch.at(run, "queryable")) is not None]
    return [
        Figure("accept, request to 202, at 100 requests per second", "p99 ≤ 50 ms", milliseconds(accepted)),
        Figure("request to `queryable`, idle", "p50 ≤ 20, p99 ≤ 60 ms", milliseconds(idle)),
        Figure("request to `queryable` at 200 requests per second", "p50 ≤ 80 ms", milliseconds(under_load)),
        *hops,
    ]


def _body(number: int, user: str) -> RememberBody:
    return RememberBody(user_id=user, dataset=f"set-{number % 64}", text=_text(number))


async def _open_loop(
    client: Client, rate: float, count: int, user: str
) -> tuple[list[float], list[str], dict[str, float]]:
    """Requests leave by the clock, whether or not earlier ones were answered."""
    loop = asyncio.get_running_loop()
    took: list[float] = []
    sent: dict[str, float] = {}

    async def one(number: int) -> None:
        begun = loop.time()
        receipt = await client.remember(_body(number, user))
        took.append(loop.time() - begun)
        sent[str(receipt.run_id)] = begun

    begun = loop.time()
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            await asyncio.sleep(max(0.0, begun + number / rate - loop.time()))
            group.create_task(one(number))
    return took, list(sent), sent


def _hops(here: Ground, runs: Sequence[str], sent: dict[str, float]) -> list[Figure]:
    steps = [("queryable", "enriching"), ("enriching", "complete")]
    rows = []
    for earlier, later in steps:
        gaps = [
            b - a
            for run in runs
            if (a := here.watch.at(run, earlier)) is not None and (b := here.watch.at(run, later)) is not None
        ]
        rows.append(Figure(f"from `{earlier}` to `{later}` at 100 requests per second", "–", milliseconds(gaps)))
    whole = [at - sent[run] for run in runs if (at := here.watch.at(run, "complete")) is not None]
    rows.append(Figure("request to `complete` at 100 requests per second", "–", milliseconds(whole)))
    return rows


async def searching(stack: NativeStack, *, facts: int) -> list[Figure]:
    """Questions to a dataset of that many facts, one at a time."""
    async with ground(stack, workers=2, name="search") as here, server(here) as (client, _, _):
        key = DatasetKey("searcher", "main")
        per_text = 20
        texts = [
            "\n".join(f"Person {t * 7 % 5000} | knows | Person {(t * 13 + n * 31) % 9000}" for n in range(per_text))
            for t in range(facts // per_text)
        ]
        requests = [here.request(key, n, text) for n, text in enumerate(texts)]
        runs = []
        for start in range(0, len(requests), 200):
            runs += await here.send(requests[start : start + 200])
        await here.watch.until(runs, "complete", 300.0)
        took = []
        loop = asyncio.get_running_loop()
        for n in range(200):
            begun = loop.time()
            question = f"whom does person {n * 17 % 5000} know"
            await client.search(SearchBody(user_id=key.user_id, dataset=key.dataset, query=question))
            took.append(loop.time() - begun)
    ms = [value * 1000 for value in took]
    return [
        Figure(
            f"search over {facts:,} facts of one dataset",
            "p50 ≤ 50, p95 ≤ 150 ms",
            f"p50 {statistics.median(ms):.0f}, p95 {percentile(ms, 0.95):.0f} ms (n = {len(ms)})",
        )
    ]
