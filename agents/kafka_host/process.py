"""A worker process from start to end.

The caller owns the event loop (`asyncio.run`); Faust's app runs in it as a service. Faust's own Worker is not used: it would own loop, signals,
logging and exit, and it does not end while the broker is away.

    check topics ─► health page ─► Faust app ─► "worker.ready" ─► … ─► SIGTERM, crash or stall ─► app stops ─► exit code

From the first SIGTERM, crash or stall on, a thread of its own ends the process when the grace time is over, whatever hangs by then: what was
not committed is done again elsewhere, and the store's fence makes that harmless.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import Any

import structlog

from agents.breaker import Breakers
from agents.contract import AnyStage
from agents.kafka_host import faust_internals
from agents.kafka_host.app import KafkaHost
from agents.kafka_host.epochs import RaiseEpochs
from agents.kafka_host.health import health_page, what_is_missing
from agents.kafka_host.options import WorkerOptions
from agents.kafka_host.watchdog import Stalled, Watchdog
from agents.metrics import Metrics
from agents.sending import place_of
from topics.clock import Clock
from topics.errors import StrandlineError
from topics.kafka.admin import check_topics
from topics.kafka.log import KafkaLog
from topics.kafka.quiet import quiet_aiokafka
from topics.registry import topic

EXIT_CLEAN = 0
EXIT_NOT_STARTED = 1
"""A topic is missing or different, or a service is away at the start: mend it, or start again with back-off."""
EXIT_CRASHED = 3
"""Crashed or stalled: start a fresh process."""
EXIT_OUT_OF_GRACE = 4
"""Was told to end and could not in time; nothing is lost."""
READY_POLL_S = 0.1

_log = structlog.get_logger()


async def run_worker(
    stages: Sequence[AnyStage],
    deps: Any,
    *,
    log: KafkaLog,
    clock: Clock,
    raise_epochs: RaiseEpochs,
    breakers: Breakers,
    metrics: Metrics,
    options: WorkerOptions,
) -> int:
    """Runs the stages until SIGTERM or SIGINT, or until nothing but a new process can help; the exit code.

    `deps` is what the stages get. After the return the caller closes its clients: the grace time still counts while it does.
    """
    ending = _Ending(options.grace)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ending.begin, signal.Signals(number).name)
    quiet_aiokafka()
    for name in (
        "faust",
        "mode",
        faust_internals.__name__,
    ):  # mode logs each service's steps, subclasses under their own module
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        await _check_start(stages, log, options)
        async with AsyncExitStack() as opened:
            datadir = opened.enter_context(tempfile.TemporaryDirectory(prefix="strandline-worker-"))
            host = KafkaHost(
                stages,
                deps,
                log=log,
                clock=clock,
                raise_epochs=raise_epochs,
                breakers=breakers,
                metrics=metrics,
                options=options,
                datadir=datadir,
            )
            port = await opened.enter_async_context(health_page(host, metrics))
            return await _run(host, log, ending, port)
    except StrandlineError as error:
        _log.error("worker.not_started", error_code=error.code, error=str(error))
        return EXIT_NOT_STARTED


async def _check_start(stages: Sequence[AnyStage], log: KafkaLog, options: WorkerOptions) -> None:
    await log.start()
    names = {name for stage in stages for name in (stage.reads, *stage.sends)} | {"remember.runs", "dead.letters"}
    specs = [topic(name) for name in sorted(names)]
    differences = await check_topics(options.bootstrap, specs, replication=options.replication, prefix=options.prefix)
    if differences:
        raise StrandlineError(f"the topics are not as the table says: {' '.join(differences)}")


async def _run(host: KafkaHost, log: KafkaLog, ending: _Ending, port: int) -> int:
    watchdog = asyncio.create_task(Watchdog(host, log, time.monotonic).watch())
    ended = asyncio.create_task(ending.wait())
    telling = asyncio.create_task(_tell_ready(host, port))
    code = EXIT_CLEAN
    try:
        starting = asyncio.create_task(_start(host))
        await asyncio.wait((starting, watchdog, ended), return_when=asyncio.FIRST_COMPLETED)
        if starting.done() and starting.exception() is None:
            await asyncio.wait((watchdog, ended), return_when=asyncio.FIRST_COMPLETED)
        failure = _failure_of(starting) or _failure_of(watchdog)
        if failure is not None and not ended.done():
            words = str(failure) if isinstance(failure, Stalled) else ""
            _log.critical("worker.crashed", error=place_of(failure), reason=words)
            ending.begin("crash")
            code = EXIT_CRASHED
        starting.cancel()
        await host.app.stop()
        await host.epochs.close()
    finally:
        for task in (watchdog, ended, telling):
            task.cancel()
        await asyncio.gather(watchdog, ended, telling, return_exceptions=True)
    _log.info("worker.ended", exit_code=code)
    return code


async def _tell_ready(host: KafkaHost, port: int) -> None:
    """One line when the page answers, one when the first records can be taken."""
    page: dict[str, Any] = {"host": host.options.health_host, "port": port}
    _log.info("worker.listening", **page)
    while what_is_missing(host):  # noqa: ASYNC110  it is the sum of what several others change
        await asyncio.sleep(READY_POLL_S)
    _log.info("worker.ready", stages=[each.stage.name for each in host.stages.values()], **page)


async def _start(host: KafkaHost) -> None:
    await host.app.start()


def _failure_of(task: asyncio.Task[None]) -> BaseException | None:
    return task.exception() if task.done() and not task.cancelled() else None


class _Ending:
    """The wish to end, and the thread that makes it come true."""

    def __init__(self, grace: timedelta) -> None:
        self._grace_s = grace.total_seconds()
        self._begun = asyncio.Event()
        self._timer: threading.Timer | None = None

    def begin(self, reason: str) -> None:
        self._begun.set()
        if self._timer is not None:
            return
        _log.info("worker.ending", reason=reason, grace_s=self._grace_s)
        # A second earlier than whoever kills us after the grace time; at least half of it.
        self._timer = threading.Timer(max(self._grace_s - 1.0, self._grace_s / 2), self._force)
        self._timer.daemon = True
        self._timer.start()

    async def wait(self) -> None:
        await self._begun.wait()

    def _force(self) -> None:
        _log.error("worker.out_of_grace", grace_s=self._grace_s, exit_code=EXIT_OUT_OF_GRACE)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(EXIT_OUT_OF_GRACE)
