"""A breaker: opens at an outage, lets one probe through, closes when the service answers."""

from __future__ import annotations

from datetime import timedelta

from agents.breaker import Breakers
from topics.errors import Outage


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_one_at_a_time_tries_whether_the_service_is_back() -> None:
    time = Time()
    breakers = Breakers(time)
    breaker = breakers.trip(Outage("neo4j", "away"))
    assert not breaker.enter()
    time.now += breaker.wait_s()
    assert breaker.enter()
    assert not breaker.enter(), "one probe is under way"
    breaker.trip(Outage("neo4j", "still away"))
    assert not breaker.enter()
    time.now += breaker.wait_s()
    assert breaker.enter()
    breaker.reset()
    assert breaker.enter()
    assert breaker.enter()
    assert breakers.away() == ()


def test_waits_grow_up_to_a_cap_and_obey_what_the_service_asks() -> None:
    time = Time()
    breaker = Breakers(time).of("model")
    waits = []
    for _ in range(12):
        breaker.trip(Outage("model", "away"))
        waits.append(breaker.wait_s())
        time.now += waits[-1]
        assert breaker.enter()
    assert waits[0] <= 0.5
    assert 5 <= waits[-1] <= 10
    breaker.trip(Outage("model", "away", retry_after=timedelta(seconds=30)))
    assert breaker.wait_s() == 30


def test_a_probe_that_shows_nothing_lets_the_next_one_try() -> None:
    time = Time()
    breaker = Breakers(time).trip(Outage("neo4j", "away"))
    time.now += breaker.wait_s()
    assert breaker.enter()
    breaker.release()
    assert breaker.enter()


def test_a_service_that_nobody_has_tried_for_long_is_not_known_to_be_away() -> None:
    time = Time()
    breakers = Breakers(time)
    breakers.trip(Outage("neo4j", "away"))
    assert breakers.away() == ("neo4j",)
    time.now += 300
    assert breakers.away() == ()
