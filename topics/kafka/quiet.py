"""Keeps aiokafka's loggers readable: an outage of ten seconds writes thousands of equal lines, and its debug lines hold whole records."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta

# Creates the loggers to be limited: a filter on a parent logger does not see the records of its children.
import aiokafka.admin  # noqa: F401


class RateLimit(logging.Filter):
    """Lets each message (by logger, level and template) pass once per interval and says how many it held back.

    Drops everything below INFO: aiokafka's debug lines print keys and values, which are people's texts.
    """

    def __init__(
        self, every: timedelta = timedelta(seconds=30), monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__()
        self._every = every.total_seconds()
        self._monotonic = monotonic
        self._seen: dict[tuple[str, int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.INFO:
            return False
        kind = (record.name, record.levelno, str(record.msg))
        now = self._monotonic()
        passed_at, held = self._seen.get(kind, (None, 0))
        if passed_at is not None and now - passed_at < self._every:
            self._seen[kind] = (passed_at, held + 1)
            return False
        self._seen[kind] = (now, 0)
        if held:
            record.msg = f"{record.getMessage()} ({held} more like this held back)"
            record.args = ()
        return True


def quiet_aiokafka(every: timedelta = timedelta(seconds=30)) -> None:
    """Puts one rate limit on every aiokafka logger of the process. A second call replaces the first."""
    limit = RateLimit(every)
    names = [name for name in logging.root.manager.loggerDict if name == "aiokafka" or name.startswith("aiokafka.")]
    for name in names:
        logger = logging.getLogger(name)
        for old in [one for one in logger.filters if isinstance(one, RateLimit)]:
            logger.removeFilter(old)
        logger.addFilter(limit)
