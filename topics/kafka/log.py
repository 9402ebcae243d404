"""The log on Kafka: `topics.log.Log` over one shared idempotent producer and consumers without a group.

Appending never depends on the broker having been there before: the producer starts at the first append, and an append during an outage
waits until its deadline, then raises Outage. Records of an append that timed out may still arrive later, in order and before newer ones of
their key, so whoever repeats them must repeat them with the same ids.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from datetime import timedelta
from types import TracebackType
from typing import Self

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    KafkaError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    RecordTooLargeError,
)
from aiokafka.structs import RecordMetadata

from topics.codec import Encoded, encode, encoded_bytes
from topics.envelope import Incoming, Outgoing
from topics.errors import Outage, Refused, StrandlineError
from topics.kafka import reader
from topics.kafka.admin import cluster_id
from topics.kafka.budget import ByteBudget
from topics.kafka.names import TopicNames
from topics.kafka.producer import SharedProducer
from topics.keys import partition_of
from topics.log import Place
from topics.registry import topic as spec_of

_TOO_LARGE = (MessageSizeTooLargeError, RecordListTooLargeError, RecordTooLargeError)

_REPLACE_AFTER = timedelta(seconds=60)
"""Nothing delivered for so long, though tried: the brokers may have moved, which a running producer cannot learn."""

_QUEUED_BYTES = 64 * 1024 * 1024
"""One request takes a batch of every partition, and a broker closes the connection on one over 100 MiB (`socket.request.max.bytes`)."""

_PAUSE_SECONDS = 0.1


class KafkaLog:
    """See `topics.log.Log`. Made without I/O, inside a running event loop; close it, or use it with `async with`.

    `prefix` stands before every topic's name on the broker; callers use the plain names. `log_id` "" takes the cluster's id. `deadline` is
    how long an append or a question may take before it is an Outage.
    """

    def __init__(
        self, bootstrap: str, *, prefix: str = "", log_id: str = "", deadline: timedelta = timedelta(seconds=10)
    ) -> None:
        self._bootstrap = bootstrap
        self._names = TopicNames(prefix)
        self._configured_id = log_id
        self._log_id = log_id
        self._deadline = deadline
        self._producer = SharedProducer(bootstrap, self._learn_log_id)
        self._budget = ByteBudget(_QUEUED_BYTES)
        self._failing_since: float | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def log_id(self) -> str:
        """The configured name, else the cluster's id. Raises Outage if neither is known yet: `start`, `ends` or a first append learns it.

        The cluster's id stays the same when topics are deleted and made again: configure another name then. A process that outlives
        its cluster's replacement learns the new id with its next producer; restart the processes when you replace a cluster.
        """
        if not self._log_id:
            raise Outage("kafka", f"no broker at {self._bootstrap} has told the cluster's id yet")
        return self._log_id

    async def start(self) -> None:
        """Connects now instead of at the first append. Raises Outage after the deadline; `append` keeps trying nevertheless."""
        try:
            async with asyncio.timeout(self._deadline.total_seconds()):
                await self._producer.get()
        except TimeoutError:
            raise self._outage("no connection") from None

    async def append(self, records: Sequence[Outgoing]) -> Sequence[Place]:
        """See `Log.append`. A failed batch is sent again by a fresh producer until the deadline, which can repeat records of the call."""
        encoded = [encode(record) for record in records]
        if not encoded:
            return ()
        loop = asyncio.get_running_loop()
        producer: AIOKafkaProducer | None = None
        try:
            async with asyncio.timeout(self._deadline.total_seconds()):
                while True:
                    producer = await self._producer.get()
                    places = await self._try_append(producer, encoded)
                    if places is not None:
                        self._failing_since = None
                        self._producer.last_error = ""
                        return places
                    await asyncio.sleep(_PAUSE_SECONDS)
        except TimeoutError:
            self._failing_since = self._failing_since or loop.time()
            if producer is not None and loop.time() - self._failing_since > _REPLACE_AFTER.total_seconds():
                self._failing_since = None
                self._producer.replace(producer, f"nothing delivered for {_REPLACE_AFTER.total_seconds():.0f} s")
            raise self._outage(f"{len(encoded)} records unconfirmed, repeat them with the same ids") from None

    async def _try_append(self, producer: AIOKafkaProducer, encoded: Sequence[Encoded]) -> tuple[Place, ...] | None:
        """None after a failure that another try may mend. Raises Refused for a record that the broker finds too large."""
        try:
            for name in dict.fromkeys(record.topic for record in encoded):
                if not await self._has_its_partitions(producer, name):
                    return None
            delivered = await self._deliver(producer, encoded)
        except _TOO_LARGE as error:
            self._producer.replace(producer, "a batch was refused as too large")
            raise Refused(
                f"Kafka takes smaller records than the table allows ({error}): run `strandline topics check`"
            ) from error
        except (KafkaError, OSError) as error:
            self._producer.replace(producer, f"a batch failed: {error}")
            return None
        return tuple(
            Place(record.topic, metadata.partition, metadata.offset)
            for record, metadata in zip(encoded, delivered, strict=True)
        )

    async def _has_its_partitions(self, producer: AIOKafkaProducer, topic: str) -> bool:
        """Sending with another partition count would put keys on other partitions than everybody else does."""
        name, wanted, client = self._names.on_broker(topic), spec_of(topic).partitions, producer.client
        if len(client.cluster.partitions_for_topic(name) or ()) == wanted:
            return True
        client.add_topic(name)
        if not await client.force_metadata_update():
            return False
        known = len(client.cluster.partitions_for_topic(name) or ())
        if known == 0:
            self._producer.last_error = f"topic {name} is missing: run `strandline topics create`"
        elif known != wanted:
            self._producer.last_error = (
                f"topic {name} has {known} partitions instead of {wanted}: run `strandline topics check`"
            )
        return known == wanted

    async def _deliver(self, producer: AIOKafkaProducer, encoded: Sequence[Encoded]) -> list[RecordMetadata]:
        """Queues all, then waits for all: one by one would cost a round trip each."""
        sent = [await self._queue(producer, record) for record in encoded]
        await asyncio.wait(sent, return_when=asyncio.FIRST_EXCEPTION)
        for future in sent:
            if future.done() and (error := future.exception()) is not None:
                raise error
        return [future.result() for future in sent]

    async def _queue(self, producer: AIOKafkaProducer, record: Encoded) -> asyncio.Future[RecordMetadata]:
        size = await self._budget.take(encoded_bytes(record))
        try:
            future: asyncio.Future[RecordMetadata] = await producer.send(
                self._names.on_broker(record.topic),
                record.value,
                record.key,
                partition=partition_of(record.key, spec_of(record.topic).partitions),
                headers=list(record.headers),  # the compiled batch builder takes nothing else
            )
        except BaseException:
            self._budget.give_back(size)
            raise
        future.add_done_callback(lambda settled: self._settle(settled, size))
        return future

    def _settle(self, future: asyncio.Future[RecordMetadata], size: int) -> None:
        """Runs when the record has left the queue, which can be long after its append gave up."""
        self._budget.give_back(size)
        if not future.cancelled():
            future.exception()  # looked at, so that the loop does not report it when nobody waits any more

    async def ends(self, topic: str) -> Mapping[int, int]:
        """See `Log.ends`. Raises Outage after the deadline, and for a topic that is missing."""
        wanted = {self._names.on_broker(topic): spec_of(topic).partitions}
        try:
            async with asyncio.timeout(self._deadline.total_seconds()), reader.reading(self._bootstrap) as consumer:
                found = await reader.ends(consumer, wanted)
                if not self._log_id:
                    # Offsets mean nothing without the log they belong to: whoever asks for them may ask for it next.
                    await self._learn_log_id()
        except (KafkaError, OSError, StrandlineError) as error:
            raise self._outage(f"the ends of {topic} are unknown", str(error)) from error
        return {place.partition: end for place, end in found.items()}

    def follow(self, topic: str, start: Mapping[int, int]) -> AsyncGenerator[Incoming, None]:
        """See `Log.follow`. Raises Refused at its first step for a partition that the topic does not have; waits through outages."""
        return reader.follow(self._bootstrap, self._names, topic, start, deadline=self._deadline)

    async def close(self) -> None:
        """Waits for what is queued, at most some seconds, also while the broker is down. Ends no follower: close those themselves."""
        await self._producer.close()

    async def _learn_log_id(self) -> None:
        if not self._configured_id:
            self._log_id = await cluster_id(self._bootstrap)

    def _outage(self, what: str, reason: str = "") -> Outage:
        seconds = self._deadline.total_seconds()
        reason = reason or self._producer.last_error or "no answer in time"
        return Outage("kafka", f"Kafka at {self._bootstrap}, within {seconds:g} s: {what} ({reason})")
