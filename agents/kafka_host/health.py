"""The worker's own page: /live, /ready and /metrics, on loopback unless told otherwise.

A small server of ours in the worker's loop, not Faust's: it answers from before Faust starts until it has ended. A loop that is blocked does
not answer /live, which is what that question is for. No service is asked here: readiness tells what the worker has found out by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from prometheus_client import generate_latest

from agents.kafka_host.app import KafkaHost
from agents.metrics import Metrics


@asynccontextmanager
async def health_page(host: KafkaHost, metrics: Metrics) -> AsyncIterator[int]:
    """Serves while the block runs; gives the port."""

    async def ready(request: web.Request) -> web.Response:
        return _ready(host)

    async def measured(request: web.Request) -> web.Response:
        return _metrics(host, metrics)

    routes = web.Application()
    routes.add_routes([web.get("/live", _live), web.get("/ready", ready), web.get("/metrics", measured)])
    runner = web.AppRunner(routes, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host.options.health_host, host.options.health_port)
        await site.start()
        yield int(runner.addresses[0][1])
    finally:
        await runner.cleanup()


async def _live(request: web.Request) -> web.Response:
    return web.json_response({"live": True})


def _ready(host: KafkaHost) -> web.Response:
    missing = what_is_missing(host)
    body = {"ready": not missing, "missing": missing, **what_stands_still(host)}
    return web.json_response(body, status=503 if missing else 200)


def what_is_missing(host: KafkaHost) -> list[str]:
    """Names what keeps the worker from working; [] if it is ready."""
    missing = [] if host.assignment else ["partitions"]
    missing += ["epochs"] if host.epochs.is_claiming() else []
    return missing + list(host.breakers.away())


def what_stands_still(host: KafkaHost) -> dict[str, Any]:
    """`holes`: lanes by stage that wait for a missing number; `full`: stages with a partition that is not read until records are done.

    Neither makes the worker unready: the other datasets work, and no restart would help these.
    """
    return {
        "holes": host.holes.counts(),
        "full": [each.stage.name for each in host.stages.values() if each.is_full()],
    }


def _metrics(host: KafkaHost, metrics: Metrics) -> web.Response:
    partitions = Counter(tp.topic for tp in host.assignment)
    for topic, stage_host in host.stages.items():
        name = stage_host.stage.name
        metrics.pending.labels(name).set(stage_host.pending)
        metrics.oldest_pending.labels(name).set(stage_host.oldest_pending_age())
        metrics.holes.labels(name).set(host.holes.count(name))
        metrics.assigned.labels(name).set(partitions[topic])
    for breaker in host.breakers:
        metrics.breaker_open.labels(breaker.service).set(breaker.is_away())
    return web.Response(body=generate_latest(metrics.registry), content_type="text/plain", charset="utf-8")
