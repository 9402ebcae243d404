from __future__ import annotations

import pytest

from topics.errors import StrandlineError
from topics.kafka.names import TopicNames


def test_without_a_prefix_names_are_the_same() -> None:
    assert TopicNames().on_broker("remember.runs") == "remember.runs"
    assert TopicNames().plain("remember.runs") == "remember.runs"


def test_a_prefix_is_put_on_and_taken_off() -> None:
    names = TopicNames("t1.")
    assert names.on_broker("remember.runs") == "t1.remember.runs"
    assert names.plain("t1.remember.runs") == "remember.runs"


def test_a_topic_of_somebody_else_has_no_plain_name() -> None:
    assert TopicNames("t1.").plain("t2.remember.runs") is None


@pytest.mark.parametrize("prefix", ["a b", "a/", "ü", "x" * 250, "a\n"])
def test_a_prefix_that_kafka_would_refuse_is_refused_at_once(prefix: str) -> None:
    with pytest.raises(StrandlineError, match="not usable"):
        TopicNames(prefix)
