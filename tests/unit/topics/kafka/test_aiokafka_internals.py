"""Fails when a release of aiokafka renames what `topics/kafka/aiokafka_internals.py` uses."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from aiokafka import AIOKafkaProducer
from aiokafka.producer.message_accumulator import MessageBatch

from topics.kafka.aiokafka_internals import end_producer, is_broken


async def test_the_private_names_are_there() -> None:
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1", acks="all", enable_idempotence=True)
    try:
        assert callable(producer._message_accumulator.fail_all)
        assert list(producer._message_accumulator._batches.values()) == []
        assert list(producer._message_accumulator._pending_batches) == []
        assert isinstance(MessageBatch(None, None, 0, 0)._drain_waiter, asyncio.Future)
        assert producer._sender.sender_task is None
        assert callable(producer.client.close)
        assert callable(producer.client.force_metadata_update)
        assert callable(producer.client.add_topic)
        assert callable(producer.client.cluster.partitions_for_topic)
    finally:
        await producer.stop()


async def test_a_producer_that_never_started_is_broken_and_ends_at_once() -> None:
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1", acks="all", enable_idempotence=True)
    assert is_broken(producer)
    assert await end_producer(producer, flush=timedelta(seconds=5))
