from __future__ import annotations

import re

import pytest

from topics.errors import StrandlineError
from topics.registry import MAX_RECORD_BYTES, STAGE_PARTITIONS, TOPICS, TopicSpec, event_type, topic

each_topic = pytest.mark.parametrize("spec", TOPICS, ids=lambda spec: spec.name)


def test_names_are_unique() -> None:
    assert len({spec.name for spec in TOPICS}) == len(TOPICS)


def test_each_record_model_belongs_to_one_topic() -> None:
    assert len({spec.value for spec in TOPICS}) == len(TOPICS)


@each_topic
def test_a_topic_has_senders_and_readers(spec: TopicSpec) -> None:
    assert spec.sent_by
    assert spec.read_by


@each_topic
def test_all_topics_have_the_same_partitions_so_that_a_dataset_is_everywhere_on_one(spec: TopicSpec) -> None:
    assert spec.partitions == STAGE_PARTITIONS


@each_topic
def test_a_name_is_a_plural_that_kafka_takes_and_that_no_metric_name_confuses(spec: TopicSpec) -> None:
    # Kafka's metrics write . as _, so names that differ only in these collide.
    assert re.fullmatch(r"[a-z]+\.[a-z]+s", spec.name)


@each_topic
def test_a_topic_and_its_record_say_what_they_are(spec: TopicSpec) -> None:
    assert spec.doc.endswith(".")
    assert spec.value.__doc__


def test_a_dead_letter_has_room_for_the_largest_record_in_base64() -> None:
    assert topic("dead.letters").max_bytes > MAX_RECORD_BYTES * 4 / 3 + 64 * 1024


def test_configuration_is_given_in_kafkas_terms() -> None:
    assert topic("source.events").config() == {
        "cleanup.policy": "delete",
        "retention.ms": "259200000",
        "max.message.bytes": "8388608",
    }


def test_the_event_type_names_topic_and_schema() -> None:
    assert event_type(topic("remember.runs")) == "strandline.remember.runs.v1"


def test_an_unknown_topic_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(StrandlineError, match=r"dead\.letters"):
        topic("remember.run")
