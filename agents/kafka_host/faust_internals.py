"""Every private or patched name of Faust, mode and aiokafka that the host relies on, for faust-streaming 0.15.3.

A test holds each of them against the installed packages: an upgrade that moves one fails there, not in production.

What is changed, and why:
- *Commit before revoke.* Faust forgets what was acknowledged when partitions are revoked, and commits only then; that work would be redone.
- *Acknowledgements by generation.* Faust commits past open records (faust-streaming #606), and its plain stream acknowledges records that it
  skips as stale. Here an acknowledgement counts only for a record of the present assignment.
- *Rejoin as a new member.* A member of a stable group that asks for a rebalance is told that there is none; only who leaves and comes back gets
  its records again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

import faust
import structlog
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, EventT, Message
from faust.types.transports import ConsumerT
from mode.utils.futures import notify

COMMIT_DEADLINE_S = 3.0
"""Of the commit before a revoke: with the broker away a rebalance must not wait for it."""

_log = structlog.get_logger()


class RebalanceHooks:
    """What the host wants to know of rebalances. Called in the app's event loop; must not wait."""

    def revoked(self) -> None:
        """A rebalance begins: no partition is ours until `assigned`."""

    def assigned(self, partitions: set[TP]) -> None:
        """These, and no others, are ours now."""


class LaneConsumer(driver.Consumer):
    """Faust's consumer with the changes named above."""

    hooks: RebalanceHooks = RebalanceHooks()

    async def on_partitions_revoked(self, revoked: set[TP]) -> None:
        self.hooks.revoked()
        try:
            async with asyncio.timeout(COMMIT_DEADLINE_S):
                await self.commit()
        except Exception as error:  # noqa: BLE001  the records will come again
            _log.warning("worker.commit_before_revoke_failed", error_type=type(error).__name__)
        await super().on_partitions_revoked(revoked)

    async def on_partitions_assigned(self, assigned: set[TP], generation_id: int = 0) -> None:
        self.hooks.assigned(set(assigned))
        await super().on_partitions_assigned(assigned, generation_id)

    def ack(self, message: Message) -> bool:
        if message.generation_id != self.app.consumer_generation_id:
            self.forget(message)
            return False
        return super().ack(message)

    def forget(self, message: Message) -> None:
        """Faust waits, in a rebalance and at the end, for every record it handed out: take this one off its list, and wake who waits."""
        self._unacked_messages.discard(message)
        notify(self._waiting_for_ack)


class LaneTransport(driver.Transport):
    Consumer: ClassVar[type[ConsumerT]] = LaneConsumer


class LaneApp(faust.App):
    """A Faust app whose consumer is a LaneConsumer."""

    hooks: RebalanceHooks = RebalanceHooks()

    def _new_transport(self) -> Any:
        return LaneTransport(self.conf.broker_consumer, self)

    def _new_consumer(self) -> ConsumerT:
        consumer = cast(LaneConsumer, super()._new_consumer())
        consumer.hooks = self.hooks
        return consumer


def is_stale(app: faust.App, message: Message) -> bool:
    """Its partition is being taken away or was assigned anew since the record was fetched.

    Both are needed: a worker that waits for its handlers in a rebalance still has the old generation. Not `app.rebalancing`, which is still
    true for the first records of a new assignment. A process that was paused gets False here although it lost the partition: only the store's
    fence stops it.
    """
    return not app.flow_control.is_active() or message.generation_id != app.consumer_generation_id


def acknowledge(event: EventT[Any]) -> None:
    event.ack()


def forget(app: faust.App, message: Message) -> None:
    cast(LaneConsumer, app.consumer).forget(message)


def committed_offsets(app: faust.App) -> Mapping[TP, int]:
    """Where the assigned partitions stand, as far as this process knows; a partition without any commit is left out."""
    consumer = cast(LaneConsumer, app.consumer)
    return {tp: offset for tp, offset in consumer._committed_offset.items() if offset}


def generation(app: faust.App) -> int:
    return app.consumer_generation_id


def leave_and_rejoin(app: faust.App) -> None:
    """Leaves the consumer group and joins it as a new member, in the consumer's own thread. Returns at once."""
    thread = cast(LaneConsumer, app.consumer)._thread
    consumer = thread._consumer
    if consumer is not None and consumer._coordinator is not None:
        asyncio.run_coroutine_threadsafe(consumer._coordinator._maybe_leave_group(), thread.thread_loop)


def crash_reason(app: faust.App) -> BaseException | None:
    """Why Faust gave up; None while it has not."""
    if not app.crashed:
        return None
    return app.crash_reason or RuntimeError("Faust ended without a reason")


AgentBody = Callable[[Any], Any]


def register_agent(app: faust.App, topic: str, name: str, body: AgentBody) -> None:
    """One actor a partition, raw bytes."""
    channel = app.topic(topic, key_serializer="raw", value_serializer="raw")
    app.agent(channel, name=name, isolated_partitions=True)(body)


def build_app(group_id: str, bootstrap: str, datadir: str, session_timeout_s: float, hooks: RebalanceHooks) -> LaneApp:
    """An app that makes no topics, tables or web server, and logs through the process's own set-up."""
    app = LaneApp(
        group_id,
        broker=[f"kafka://{address.strip()}" for address in bootstrap.split(",")],
        datadir=datadir,
        web_enabled=False,
        topic_allow_declare=False,
        topic_disable_leader=True,
        table_standby_replicas=0,
        key_serializer="raw",
        value_serializer="raw",
        consumer_auto_offset_reset="earliest",
        consumer_metadata_max_age_ms=30_000,
        broker_session_timeout=session_timeout_s,
        broker_heartbeat_interval=1.0,
        broker_rebalance_timeout=60.0,
        broker_commit_interval=1.0,
        producer_acks=-1,
        processing_guarantee="at_least_once",
        stream_buffer_maxsize=128,
        worker_redirect_stdouts=False,
        logging_config=None,
    )
    app.hooks = hooks
    return app
