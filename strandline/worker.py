"""`strandline worker`: the Kafka host with the stages of the table, as one process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import structlog

from agents.breaker import Breakers
from agents.contract import AnyStage
from agents.deps import Deps
from agents.group_commit import Backoff
from agents.kafka_host.options import WorkerOptions
from agents.kafka_host.process import EXIT_CLEAN, run_worker
from agents.metrics import Metrics
from agents.pipeline import STAGES
from strandline import wiring
from strandline.log_wiring import open_log
from strandline.settings import Settings
from topics.clock import SystemClock
from topics.errors import Outage
from topics.kafka.log import KafkaLog

logger = structlog.get_logger(__name__)

START_BACKOFF = Backoff(first=timedelta(milliseconds=500), cap=timedelta(seconds=5))


async def work(settings: Settings, stages: Sequence[AnyStage] = STAGES) -> int:
    """Works until it is told to end, or until only a fresh process can help; the exit code.

    Waits for services that are away when it starts, without limit: whoever starts everything at once need not know an order.
    """
    told = _end_when_told()
    try:
        return await _work(settings, stages)
    except asyncio.CancelledError:
        if not told.is_set():
            raise
        logger.info("worker.ended", exit_code=EXIT_CLEAN)
        return EXIT_CLEAN


def _end_when_told() -> asyncio.Event:
    """Cancels this task at SIGTERM and SIGINT, until the host has handlers of its own: before that there is nothing to finish."""
    told, task, loop = asyncio.Event(), asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None

    def end(number: signal.Signals) -> None:
        if not told.is_set():
            told.set()
            logger.info("worker.ending", reason=number.name)
            task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end, number)
    return told


async def _work(settings: Settings, stages: Sequence[AnyStage]) -> int:
    metrics, breakers = Metrics(), Breakers()
    async with (
        open_log(settings) as log,
        wiring.open_language(settings) as language,
        _patient_deps(settings, log, language, metrics, breakers) as deps,
    ):
        return await run_worker(
            stages,
            deps,
            log=log,
            clock=SystemClock(),
            raise_epochs=deps.store.raise_epochs,
            breakers=breakers,
            metrics=metrics,
            options=options_of(settings),
        )


@asynccontextmanager
async def _patient_deps(
    settings: Settings, log: KafkaLog, language: wiring.Language, metrics: Metrics, breakers: Breakers
) -> AsyncIterator[Deps]:
    async with AsyncExitStack() as opened:
        deps: Deps | None = None
        tries = 0
        while deps is None:
            try:
                deps = await opened.enter_async_context(wiring.open_deps(settings, log, language, metrics, breakers))
            except Outage as error:
                tries += 1
                logger.warning("worker.waiting", service=error.service, error=str(error))
                await asyncio.sleep(START_BACKOFF.seconds(tries))
        yield deps


def options_of(settings: Settings) -> WorkerOptions:
    """The host's own form of the settings."""
    kafka, worker = settings.kafka, settings.worker
    return WorkerOptions(
        bootstrap=kafka.bootstrap,
        prefix=kafka.prefix,
        replication=kafka.replication,
        group=worker.group,
        session_timeout=kafka.session_timeout,
        health_host=worker.health_host,
        health_port=worker.health_port,
        stall_alarm=worker.stall_alarm,
        stall_exit=worker.stall_exit,
        grace=worker.grace,
        max_pending=worker.max_pending,
    )
