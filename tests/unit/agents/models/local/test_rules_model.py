"""The reader's process: killed, slow, orphaned. One model for the whole file, since each start loads spaCy."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio

from agents.models.base import Passage
from agents.models.local.rules_model import CRASHES_ALLOWED, RulesModel
from tests.doubles.server import eventually
from topics.errors import Outage, Permanent, Retryable

NOW = datetime(2025, 3, 12, tzinfo=UTC)
PASSAGE = Passage("Tom Brown works at Initech.", NOW)
LONG = Passage("Tom Brown works at Initech. " * 20_000, NOW)

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def model() -> AsyncIterator[RulesModel]:
    opened = RulesModel()
    yield opened
    await opened.close()


async def started(model: RulesModel) -> int:
    await eventually(lambda: model.process_id, seconds=60)
    assert model.process_id is not None
    return model.process_id


async def kill_while_reading(model: RulesModel) -> BaseException | None:
    reading = asyncio.create_task(model.extract(LONG))
    os.kill(await started(model), signal.SIGKILL)
    (result,) = await asyncio.gather(reading, return_exceptions=True)
    return result if isinstance(result, BaseException) else None


async def test_nothing_starts_before_the_first_text() -> None:
    idle = RulesModel()
    assert idle.process_id is None
    await idle.close()


async def test_the_event_loop_stays_free_while_a_text_is_read(model: RulesModel) -> None:
    reading = asyncio.create_task(model.extract(PASSAGE))
    turns = 0
    while not reading.done():
        await asyncio.wait({reading}, timeout=0.005)
        turns += 1
    assert (await reading).statements
    assert turns > 10


async def test_a_killed_reader_is_an_outage_and_the_next_text_has_a_new_one(model: RulesModel) -> None:
    await model.extract(PASSAGE)
    first = model.process_id
    error = await kill_while_reading(model)
    assert type(error) is Outage
    assert error.service == "model"
    assert (await model.extract(PASSAGE)).statements
    assert model.process_id not in (None, first)


async def test_a_reader_that_died_between_two_texts_costs_nothing(model: RulesModel) -> None:
    await model.extract(PASSAGE)
    process_id = await started(model)
    os.kill(process_id, signal.SIGKILL)
    await eventually(lambda: not _is_running(process_id))
    # Whether the pool has noticed yet decides between success and one Outage; the text after that is read for certain.
    await asyncio.gather(model.extract(PASSAGE), return_exceptions=True)
    assert (await model.extract(PASSAGE)).statements


async def test_a_text_that_ends_every_reader_is_refused_at_last() -> None:
    # Killed before spaCy is loaded: this costs no more than the interpreter's start.
    model = RulesModel()
    for _ in range(CRASHES_ALLOWED):
        assert type(await kill_while_reading(model)) is Outage
    with pytest.raises(Permanent, match="stays stored"):
        await model.extract(LONG)
    await model.close()


async def test_a_text_past_its_time_is_tried_again_with_a_new_reader() -> None:
    model = RulesModel(timeout=timedelta(milliseconds=50))
    with pytest.raises(Retryable):
        await model.extract(LONG)
    assert model.process_id is None
    await model.close()


async def test_a_cancelled_text_frees_the_reader() -> None:
    model = RulesModel()
    reading = asyncio.create_task(model.extract(LONG))
    await started(model)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert model.process_id is None
    await model.close()


async def test_after_close_nothing_is_read() -> None:
    model = RulesModel()
    await model.close()
    with pytest.raises(Permanent, match="closed"):
        await model.extract(PASSAGE)


PARENT = """
import asyncio, os, sys
from datetime import UTC, datetime
from agents.models.base import Passage
from agents.models.local.rules_model import RulesModel

async def main():
    model = RulesModel()
    reading = asyncio.create_task(model.extract(Passage("Tom Brown works at Initech.", datetime.now(UTC))))
    while model.process_id is None:
        await asyncio.wait({reading}, timeout=0.01)
    print(model.process_id, flush=True)
    await asyncio.Event().wait()

if __name__ == "__main__":
    asyncio.run(main())
"""


async def test_a_reader_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    root = Path(__file__).parents[5]
    parent = await asyncio.create_subprocess_exec(
        sys.executable, str(script), stdout=subprocess.PIPE, cwd=root, env={**os.environ, "PYTHONPATH": str(root)}
    )
    assert parent.stdout is not None
    async with asyncio.timeout(90):
        child = int(await parent.stdout.readline())
        assert _is_running(child)
        parent.kill()
        await parent.wait()
    await eventually(lambda: not _is_running(child), seconds=60)


def _is_running(process_id: int) -> bool:
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
