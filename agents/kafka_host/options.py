"""What a worker process is told: the settings' own form for this host."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Defaults as in the settings; the description of each is there too."""

    bootstrap: str
    prefix: str = ""
    replication: int = 1
    group: str = "strandline"
    session_timeout: timedelta = timedelta(seconds=10)
    health_host: str = "127.0.0.1"
    health_port: int = 0
    stall_alarm: timedelta = timedelta(minutes=2)
    stall_exit: timedelta = timedelta(minutes=10)
    grace: timedelta = timedelta(seconds=35)
    max_pending: int = 512

    @property
    def group_id(self) -> str:
        """The consumer group as Kafka knows it. All workers of a group must read the same topics."""
        return f"{self.prefix}{self.group}"
