"""Topic names on a broker: a prefix before the names of the table, so that several installations or test runs share one broker.

Outside of `topics/kafka` everybody speaks the plain names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from topics.errors import StrandlineError
from topics.registry import TOPICS

_LEGAL = re.compile(r"[A-Za-z0-9._-]*")

_LONGEST = 249 - max(len(spec.name) for spec in TOPICS)
"""Kafka's limit for a topic name is 249 characters (org.apache.kafka.common.internals.Topic)."""


@dataclass(frozen=True, slots=True)
class TopicNames:
    """Translates between plain names and those on the broker. StrandlineError for a prefix that Kafka would refuse."""

    prefix: str = ""

    def __post_init__(self) -> None:
        if not _LEGAL.fullmatch(self.prefix) or len(self.prefix) > _LONGEST:
            raise StrandlineError(
                f"the topic prefix {self.prefix[:80]!r} is not usable: "
                f"at most {_LONGEST} letters, digits, dots, hyphens and underscores"
            )

    def on_broker(self, topic: str) -> str:
        """The name that Kafka knows the topic by."""
        return self.prefix + topic

    def plain(self, name: str) -> str | None:
        """The name without the prefix; None for a topic of somebody else."""
        return name.removeprefix(self.prefix) if name.startswith(self.prefix) else None
