"""The one producer of a process: idempotent, started at its first use, started anew when it is broken for good.

An idempotent aiokafka producer never gives a batch up and never renews its producer id. So after any failed batch its sequence numbers
have a hole, and every later batch of that partition is refused: it must be replaced. It also learns the brokers' addresses only at its
start, so one that has long delivered nothing is replaced as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import structlog
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from topics.errors import Outage
from topics.kafka.aiokafka_internals import end_producer, is_broken
from topics.registry import TOPICS

log = structlog.get_logger(__name__)

REQUEST_TIMEOUT = timedelta(seconds=10)
"""How long one request to a broker may take before its connection is given up."""

MAX_BATCH_BYTES = 256 * 1024
"""Of one partition; a larger record travels alone. 16 KiB, the default, made a backlog wait for a round trip every 30 records."""

_START_WITHIN = timedelta(seconds=30)
"""After that a start begins anew, in case the brokers moved while it ran."""

_PAUSE_SECONDS = 0.2
_FLUSH_AT_CLOSE = timedelta(seconds=5)


class SharedProducer:
    """Gives out the running producer. `on_start` runs after each start, before anybody gets the new one."""

    def __init__(self, bootstrap: str, on_start: Callable[[], Awaitable[None]]) -> None:
        self._bootstrap = bootstrap
        self._on_start = on_start
        self._producer: AIOKafkaProducer | None = None
        self._connecting: asyncio.Task[AIOKafkaProducer] | None = None
        self._retiring: set[asyncio.Task[bool]] = set()
        self._closed = False
        self.last_error = ""
        """Why the latest start or delivery failed; "" after a success."""

    async def get(self) -> AIOKafkaProducer:
        """The running producer. Waits until a broker answers: put a deadline around it. Outage after `close`.

        Connecting goes on when the caller gives up: the next one finds it further on, and no half-made connection is dropped.
        """
        if self._closed:
            raise Outage("kafka", "the log is closed")
        if self._producer is not None:
            if not is_broken(self._producer):
                return self._producer
            self.replace(self._producer, "its sending task ended")
        if self._connecting is None or self._connecting.done():
            self._connecting = asyncio.create_task(self._connect())
        connecting = self._connecting
        try:
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            if connecting.cancelled():  # which only `close` does
                raise Outage("kafka", "the log is closed") from None
            raise

    async def _connect(self) -> AIOKafkaProducer:
        # What the old one still has under way must be settled first, or it could land behind newer records of its key.
        if self._retiring:
            await asyncio.wait(self._retiring)
        while True:
            try:
                async with asyncio.timeout(_START_WITHIN.total_seconds()):
                    self._producer = await self._start()
            except (KafkaError, OSError, Outage) as error:
                self.last_error = str(error)
                await asyncio.sleep(_PAUSE_SECONDS)
            else:
                return self._producer

    async def _start(self) -> AIOKafkaProducer:
        producer = AIOKafkaProducer(
            bootstrap_servers=self._bootstrap,
            acks="all",
            enable_idempotence=True,
            linger_ms=0,
            max_batch_size=MAX_BATCH_BYTES,
            max_request_size=max(spec.max_bytes for spec in TOPICS),
            request_timeout_ms=int(REQUEST_TIMEOUT.total_seconds() * 1000),
            metadata_max_age_ms=30_000,
        )
        started = False
        try:
            await producer.start()
            await self._on_start()
            started = True
        finally:
            if not started:
                self._retire(producer, flush=timedelta(0))
        return producer

    def replace(self, producer: AIOKafkaProducer, reason: str) -> None:
        """Takes a broken producer out of use, unless that has happened already; what it has queued fails with ProducerClosed."""
        if producer is not self._producer:
            return
        self._producer = None
        self.last_error = reason
        log.warning("producer.replaced", reason=reason)
        self._retire(producer, flush=timedelta(0))

    def _retire(self, producer: AIOKafkaProducer, *, flush: timedelta) -> None:
        ending = asyncio.create_task(end_producer(producer, flush=flush))
        self._retiring.add(ending)
        ending.add_done_callback(self._retiring.discard)

    async def close(self) -> None:
        """Waits for what is queued, but not longer than five seconds: an outage must not hold a process that wants to end."""
        self._closed = True
        if self._connecting is not None and not self._connecting.done():
            self._connecting.cancel()
            await asyncio.wait({self._connecting})
        if self._producer is not None:
            producer, self._producer = self._producer, None
            self._retire(producer, flush=_FLUSH_AT_CLOSE)
        if self._retiring:
            await asyncio.wait(set(self._retiring))
