"""`strandline topics` on a real broker, as a process, as people and scripts run it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from strandline.stack import Addresses
from tests.kafka_topics import create_raw, own_prefix
from tests.run_events import TOPIC, numbered
from topics.kafka.admin import administering
from topics.kafka.log import KafkaLog
from topics.registry import TOPICS, topic

pytestmark = pytest.mark.connected

Run = Callable[..., Awaitable[tuple[int, str]]]


@pytest.fixture
def bootstrap(services: Addresses) -> str:
    return services.kafka_bootstrap


@pytest.fixture
async def prefix(bootstrap: str) -> AsyncIterator[str]:
    async with own_prefix(bootstrap) as found:
        yield found


@pytest.fixture
def run(bootstrap: str, prefix: str, tmp_path: Path) -> Run:
    """Runs `strandline topics …`; exit code and standard output."""
    environment = os.environ | {"STRANDLINE_KAFKA__BOOTSTRAP": bootstrap, "STRANDLINE_KAFKA__PREFIX": prefix}

    async def started(*arguments: str) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "strandline", "topics", *arguments, env=environment, stdout=asyncio.subprocess.PIPE
        )
        text, _ = await process.communicate()
        assert process.returncode is not None
        return process.returncode, text.decode()

    return started


async def test_create_makes_them_once_and_check_is_content(run: Run) -> None:
    code, text = await run("check")
    assert code == 1
    assert text.count("is missing: run `strandline topics create`") == len(TOPICS)
    assert await run("create", "--json") == (0, json.dumps({"created": [spec.name for spec in TOPICS]}) + "\n")
    assert await run("create") == (0, "All topics were there, as the table says.\n")
    assert await run("check") == (0, "All topics are as the table says.\n")


async def test_drift_ends_check_and_create_with_1_and_is_named(run: Run, bootstrap: str, prefix: str) -> None:
    async with administering(bootstrap) as client:
        await create_raw(client, prefix + TOPIC, 6, topic(TOPIC).config())
    code, text = await run("create")
    assert code == 1
    assert text.startswith(f"topic {prefix}{TOPIC} has 6 partitions, the table says 12.")
    code, text = await run("check", "--json")
    assert code == 1
    assert len(json.loads(text)["differences"]) == 1


async def test_lag_shows_what_waits_and_rewind_makes_it_wait_again(run: Run, bootstrap: str, prefix: str) -> None:
    await run("create")
    assert await run("lag") == (0, f"Group {prefix}strandline has not read anything yet.\n")
    async with KafkaLog(bootstrap, prefix=prefix) as log:
        await log.append([numbered(f"user {number}", number) for number in range(9)])
    code, _ = await run("rewind", TOPIC, "--yes")
    assert code == 0
    assert await run("lag") == (0, f"topic\twaiting\tlost\n{TOPIC}\t9\t0\n")
    code, text = await run("lag", "--json")
    assert code == 0
    assert sum(one["behind"] for one in json.loads(text)) == 9
