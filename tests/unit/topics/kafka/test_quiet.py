from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta

import pytest

from topics.kafka.quiet import RateLimit, quiet_aiokafka


class Ticks:
    """A monotonic clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def line(message: str, *args: object, level: int = logging.WARNING, name: str = "aiokafka.conn") -> logging.LogRecord:
    return logging.LogRecord(name, level, __file__, 1, message, args, None)


@pytest.fixture
def _unfiltered() -> Iterator[None]:
    yield
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("aiokafka"):
            logging.getLogger(name).filters.clear()


def test_the_first_line_passes_unchanged_and_its_repeats_are_held_back() -> None:
    limit = RateLimit(timedelta(seconds=30), Ticks())
    first = line("no broker at %s", "a:1")
    assert limit.filter(first)
    assert first.getMessage() == "no broker at a:1"
    assert not any(limit.filter(line("no broker at %s", f"a:{port}")) for port in range(100))


def test_after_the_interval_a_line_says_how_many_were_held_back() -> None:
    ticks = Ticks()
    limit = RateLimit(timedelta(seconds=30), ticks)
    for _ in range(8):
        limit.filter(line("no broker at %s", "a:1"))
    ticks.now = 30
    later = line("no broker at %s", "100%")
    assert limit.filter(later)
    assert later.getMessage() == "no broker at 100% (7 more like this held back)"


def test_other_messages_and_other_levels_have_their_own_count() -> None:
    limit = RateLimit(timedelta(seconds=30), Ticks())
    assert limit.filter(line("a"))
    assert limit.filter(line("b"))
    assert limit.filter(line("a", level=logging.ERROR))
    assert limit.filter(line("a", name="aiokafka.consumer.fetcher"))


def test_debug_lines_never_pass_because_they_hold_whole_records() -> None:
    assert not RateLimit().filter(line("Sending (key=%s value=%s)", "k", "a secret", level=logging.DEBUG))


@pytest.mark.usefixtures("_unfiltered")
def test_every_logger_of_aiokafka_is_limited_once(caplog: pytest.LogCaptureFixture) -> None:
    quiet_aiokafka()
    quiet_aiokafka()
    for name in ("aiokafka", "aiokafka.conn", "aiokafka.producer.sender", "aiokafka.consumer.fetcher"):
        assert len(logging.getLogger(name).filters) == 1
    for _ in range(1000):
        logging.getLogger("aiokafka.producer.sender").warning("Got error produce response: %s", "x")
    assert len(caplog.records) == 1
