"""A worker whose services are away: it waits, opens its models once, and ends when it is told to."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from agents.group_commit import Backoff
from agents.models.registry import ModelSettings, open_models
from strandline import wiring, worker
from strandline.settings import Settings, load
from tests.doubles.server import eventually
from topics.kafka.log import KafkaLog

NOBODY = "127.0.0.1:9"
"""The discard port: nothing listens there."""


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    monkeypatch.setenv("STRANDLINE_MODEL__PROVIDER", "scripted")
    monkeypatch.setenv("STRANDLINE_KAFKA__BOOTSTRAP", NOBODY)
    load.cache_clear()
    yield load()
    load.cache_clear()


async def test_it_asks_again_and_again_without_opening_its_models_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[ModelSettings] = []

    def open_and_note(chosen: ModelSettings) -> wiring.Language:
        opened.append(chosen)
        return open_models(chosen)

    monkeypatch.setattr(wiring, "open_models", open_and_note)
    monkeypatch.setattr(worker, "START_BACKOFF", Backoff(timedelta(milliseconds=1), timedelta(milliseconds=1)))
    monkeypatch.setattr(worker, "open_log", lambda _: KafkaLog(NOBODY, deadline=timedelta(milliseconds=20)))
    with capture_logs() as logs:
        working = asyncio.create_task(worker.work(settings))
        await eventually(lambda: [one["event"] for one in logs].count("worker.waiting") >= 3)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
    assert len(opened) == 1
    assert [one["event"] for one in logs].count("models.notice") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_told_to_end_while_it_waits_it_ends_cleanly(
    settings: Settings, number: signal.Signals, tmp_path: Path
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "strandline", "worker", cwd=tmp_path, stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    async with asyncio.timeout(60):
        said = await process.stderr.readline()
        while b"models.notice" not in said:
            said = await process.stderr.readline()
        process.send_signal(number)
        rest = await process.stderr.read()
        assert await process.wait() == 0
    assert b"Traceback" not in rest
