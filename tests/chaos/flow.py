"""What flows during a chaos run, and what must be there afterwards.

Each dataset gets a chain of versions, `Build | has_status | version 0, 1, 2 …`: a one-valued relation, so each fact must close exactly the one before
it. A lost, doubled or disordered record breaks the chain where it can be seen.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from topics import ids
from topics.envelope import Outgoing
from topics.errors import Outage
from topics.keys import DatasetKey
from topics.log import Log
from topics.records import RememberRequest

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Flow:
    """`count` requests over `datasets`, sent in order per dataset by something that never gives up and never skips."""

    user: str
    count: int
    datasets: int
    per_second: float
    accepted: dict[DatasetKey, list[RememberRequest]] = field(default_factory=dict)
    repeats: int = 0
    """Sends repeated because the log did not confirm: the same request, which must not be remembered twice."""

    @property
    def total(self) -> int:
        return sum(map(len, self.accepted.values()))

    async def run(self, log: Log, choices: random.Random, say: Callable[[str], None] = print) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for number in range(self.count):
            key = DatasetKey(self.user, f"set-{number % self.datasets:02}")
            request = _request(key, number // self.datasets)
            while True:
                try:
                    await log.append([outgoing_request(request)])
                    break
                except Outage:
                    self.repeats += 1
            self.accepted.setdefault(key, []).append(request)
            if choices.random() < 0.02:  # a client that lost the answer sends again
                self.repeats += 1
                await self._again(log, request)
            if (number + 1) % 500 == 0:
                say(f"accepted {number + 1} of {self.count}")
            await asyncio.sleep(max(0.0, begun + (number + 1) / self.per_second - loop.time()))

    async def _again(self, log: Log, request: RememberRequest) -> None:
        try:
            await log.append([outgoing_request(request)])
        except Outage:
            return


def _request(key: DatasetKey, version: int) -> RememberRequest:
    text = f"Build | has_status | version {version}\nAda | uses | tool {version % 7}"
    at = START + timedelta(minutes=version)
    idempotency_key = f"version-{version}"
    return RememberRequest(
        user_id=key.user_id,
        dataset=key.dataset,
        run_id=ids.run_id(key, "api", idempotency_key, text),
        idempotency_key=idempotency_key,
        request_hash=text,
        text=text,
        reference_time=at,
        accepted_at=at,
    )


def outgoing_request(request: RememberRequest) -> Outgoing:
    """A request as the API would put it onto the log."""
    return Outgoing(
        "remember.requests",
        request,
        id=ids.sent_id("remember.requests", request.run_id),
        sender="api",
        time=request.accepted_at,
        subject=str(request.run_id),
    )


def keys_of(flow: Flow) -> Sequence[DatasetKey]:
    return sorted(flow.accepted)
