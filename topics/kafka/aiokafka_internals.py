"""The private names of aiokafka that are used, in one place. A unit test fails when a release renames one."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from aiokafka import AIOKafkaProducer
from aiokafka.errors import ProducerClosed


async def end_producer(
    producer: AIOKafkaProducer, *, flush: timedelta, grace: timedelta = timedelta(seconds=2)
) -> bool:
    """Ends a producer in bounded time (flush + 3 × grace); True if all that was queued had been answered.

    `stop()` alone waits for ever while a broker is down, since an idempotent producer never gives a batch up. Requests under way are
    awaited for `grace`, so that none of them is applied behind a successor's back; what is still queued fails with ProducerClosed.
    """
    stopping = asyncio.ensure_future(producer.stop())
    await asyncio.wait({stopping}, timeout=flush.total_seconds())
    flushed: bool = stopping.done()
    if not flushed:
        await _abandon(producer, stopping, grace.total_seconds())
    if not stopping.cancelled():
        stopping.exception()  # looked at, so that the loop does not report it: the producer is gone either way
    return flushed


async def _abandon(producer: AIOKafkaProducer, stopping: asyncio.Future[None], grace_seconds: float) -> None:
    sending = producer._sender.sender_task
    if sending is not None:
        # Before the queue fails: an answer that arrives later would look for its batch there.
        sending.cancel()
        await asyncio.wait({sending}, timeout=grace_seconds)
    _fail_queue(producer)
    await asyncio.wait({stopping}, timeout=grace_seconds)
    if not stopping.done():
        stopping.cancel()
        closing = asyncio.ensure_future(producer.client.close())
        await asyncio.wait({stopping, closing}, timeout=grace_seconds)
        closing.cancel()


def _fail_queue(producer: AIOKafkaProducer) -> None:
    queue = producer._message_accumulator
    batches = [batch for waiting in queue._batches.values() for batch in waiting] + list(queue._pending_batches)
    queue.fail_all(ProducerClosed())
    for batch in batches:
        # Nobody awaits it, and the loop would report each as an error.
        if batch._drain_waiter.done() and not batch._drain_waiter.cancelled():
            batch._drain_waiter.exception()


def is_broken(producer: AIOKafkaProducer) -> bool:
    """Whether its sending task has ended: it then refuses every record for good."""
    sending = producer._sender.sender_task
    return sending is None or sending.done()
