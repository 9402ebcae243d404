"""Builds the log's client. Apart from wiring.py because an import needs nothing else, and the stores' clients take seconds to load."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from strandline.settings import Settings
from topics.kafka.log import KafkaLog
from topics.kafka.quiet import quiet_aiokafka


@asynccontextmanager
async def open_log(settings: Settings) -> AsyncIterator[KafkaLog]:
    """Connects at its first use: a process starts also while the broker is away."""
    kafka = settings.kafka
    quiet_aiokafka()
    async with KafkaLog(kafka.bootstrap, prefix=kafka.prefix, log_id=kafka.log_id, deadline=kafka.send_deadline) as log:
        yield log
