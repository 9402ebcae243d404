"""Holds every private or patched name of Faust, mode and aiokafka against the installed packages: an upgrade that moves one fails here."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path
from typing import cast

import aiokafka
import faust
import pytest
from aiokafka.consumer.group_coordinator import GroupCoordinator
from faust.streams import Stream
from faust.transport import consumer as faust_consumer
from faust.transport.drivers import aiokafka as driver
from faust.types import TP, ConsumerMessage

from agents.kafka_host import faust_internals
from agents.kafka_host.faust_internals import LaneApp, LaneConsumer, RebalanceHooks, build_app


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[LaneApp]:
    made = build_app("strandline", "127.0.0.1:9092", str(tmp_path), 10.0, RebalanceHooks())
    yield made
    if made._consumer is not None:
        cast(LaneConsumer, made.consumer)._thread.thread_loop.close()


def message(app: LaneApp, offset: int, generation: int) -> ConsumerMessage:
    return ConsumerMessage("t", 0, offset, 0.0, 0, {}, b"k", b"v", None, tp=TP("t", 0), generation_id=generation)


def test_the_versions_are_those_that_the_internals_were_read_of() -> None:
    assert (version("faust-streaming"), version("mode-streaming"), version("aiokafka")) == ("0.15.3", "0.7.1", "0.14.0")


def test_faust_still_has_the_places_that_are_overridden() -> None:
    assert inspect.iscoroutinefunction(inspect.unwrap(driver.Consumer.on_partitions_revoked))
    assert list(inspect.signature(inspect.unwrap(driver.Consumer.on_partitions_assigned)).parameters) == [
        "self", "assigned", "generation_id",
    ]  # fmt: skip
    assert list(inspect.signature(driver.Consumer.ack).parameters) == ["self", "message"]
    assert "self.transport.create_consumer" in inspect.getsource(faust.App._new_consumer)
    assert "_acked.pop" in inspect.getsource(inspect.unwrap(faust_consumer.Consumer.on_partitions_revoked))
    assert "self._unacked_messages" in inspect.getsource(inspect.unwrap(faust_consumer.Consumer.wait_empty))
    assert "_waiting_for_ack" in inspect.getsource(faust_consumer.Consumer._wait_for_ack)
    assert hasattr(Stream, "noack")


def test_aiokafka_still_leaves_and_rejoins_as_the_host_asks() -> None:
    assert inspect.iscoroutinefunction(GroupCoordinator._maybe_leave_group)
    assert "reset_generation" in inspect.getsource(GroupCoordinator._maybe_leave_group)
    assert "request_rejoin" in inspect.getsource(GroupCoordinator.reset_generation)
    assert "_coordinator" in inspect.getsource(aiokafka.AIOKafkaConsumer)


async def test_the_app_has_the_settings_that_lanes_rely_on(app: LaneApp) -> None:
    conf = app.conf
    assert (conf.topic_allow_declare, conf.topic_disable_leader, conf.table_standby_replicas) == (False, True, 0)
    assert conf.consumer_auto_offset_reset == "earliest"
    assert conf.broker_rebalance_timeout == 60.0
    assert conf.stream_wait_empty
    assert not conf.web_enabled
    assert conf.id == "strandline"


async def test_the_app_makes_a_consumer_with_our_changes(app: LaneApp) -> None:
    consumer = app.consumer
    assert isinstance(consumer, LaneConsumer)
    assert consumer.hooks is app.hooks
    assert hasattr(consumer, "_thread")
    assert isinstance(faust_internals.committed_offsets(app), dict)


async def test_an_acknowledgement_counts_only_in_its_own_assignment(app: LaneApp) -> None:
    app.topics._acking_topics.add("t")  # type: ignore[attr-defined]
    consumer = app.consumer
    assert isinstance(consumer, LaneConsumer)
    app.consumer_generation_id = 2
    old, new = message(app, 5, generation=1), message(app, 6, generation=2)
    for each in (old, new):
        consumer.track_message(each)
        each.incref()
        each.ack(consumer)
    assert consumer._acked[TP("t", 0)] == [6]
    assert set(consumer.unacked) == set()


async def test_a_forgotten_record_is_not_waited_for(app: LaneApp) -> None:
    each = message(app, 5, generation=1)
    app.consumer.track_message(each)
    faust_internals.forget(app, each)
    faust_internals.forget(app, each)
    assert set(app.consumer.unacked) == set()


async def test_a_record_is_stale_when_flow_stops_or_the_generation_moves(app: LaneApp) -> None:
    each = message(app, 5, generation=1)
    app.consumer_generation_id = 1
    app.flow_control.resume()
    assert not faust_internals.is_stale(app, each)
    app.flow_control.suspend()
    assert faust_internals.is_stale(app, each)
    app.flow_control.resume()
    app.consumer_generation_id = 2
    assert faust_internals.is_stale(app, each)
