"""`strandline import` on a real broker, as a process: killed, repeated, on a terminal, in a pipe, on files that none of us wrote."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import sys
import sysconfig
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from strandline.stack import Addresses
from tests.e2e.system import interruptible
from tests.kafka_topics import own_topics
from topics.codec import decode
from topics.kafka.log import KafkaLog
from topics.records import SourceEvent
from topics.registry import STAGE_PARTITIONS

pytestmark = [pytest.mark.connected, pytest.mark.timeout(300)]

DEMO = Path(__file__).parents[4] / "strandline" / "demo_data"
MAIL = b"""From ada@example.org Mon Jan 12 08:05:00 2026
From: Ada <ada@example.org>
To: Ben <ben@example.org>
Subject: Number %d
Date: Mon, 12 Jan 2026 09:05:00 +0100
Message-ID: <%d@example.org>

This is mail number %d of many, and it says nothing else.

"""
MANY = 4000


class Imports:
    """`strandline import` with topics and a state folder of its own."""

    def __init__(self, addresses: Addresses, prefix: str, folder: Path) -> None:
        self.addresses, self.prefix, self.folder = addresses, prefix, folder

    @property
    def environment(self) -> Mapping[str, str]:
        return (
            os.environ
            | self.addresses.as_environment()
            | {"STRANDLINE_KAFKA__PREFIX": self.prefix, "STRANDLINE_USER": "ada"}
        )

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "strandline", "import", *arguments, "--state", str(self.folder / "state")]

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self.command(*arguments),
            env=self.environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=interruptible,
        )

    async def run(self, *arguments: str) -> tuple[int | None, str, str]:
        process = await self.start(*arguments)
        out, err = await process.communicate()
        return process.returncode, out.decode(), err.decode()

    async def report(self, *arguments: str) -> dict[str, Any]:
        code, out, err = await self.run(*arguments, "--no-wait", "--json")
        assert code == 0, err
        found: dict[str, Any] = json.loads(out)
        return found

    async def events(self) -> list[SourceEvent]:
        """All on source.events."""
        async with KafkaLog(self.addresses.kafka_bootstrap, prefix=self.prefix) as log:
            missing = sum((await log.ends("source.events")).values())
            found: list[SourceEvent] = []
            if missing:
                async with aclosing(log.follow("source.events", dict.fromkeys(range(STAGE_PARTITIONS), 0))) as incoming:
                    async for one in incoming:
                        record = decode(one)
                        assert isinstance(record, SourceEvent)
                        found.append(record)
                        if len(found) == missing:
                            break
            return found


@pytest.fixture
async def imports(services: Addresses, tmp_path: Path) -> AsyncIterator[Imports]:
    async with own_topics(services.kafka_bootstrap) as prefix:
        yield Imports(services, prefix, tmp_path)


@pytest.fixture
def many(tmp_path: Path) -> Path:
    path = tmp_path / "many.mbox"
    path.write_bytes(b"".join(MAIL % (number, number, number) for number in range(MANY)))
    return path


async def test_the_sample_is_sent_whole_and_only_once(imports: Imports) -> None:
    first = await imports.report(str(DEMO / "mail.mbox"))
    again = await imports.report(str(DEMO / "mail.mbox"))
    assert (first["sent"], first["skipped"]) == (12, {})
    assert (again["sent"], again["nothing_new"], again["sent_before"]) == (0, True, 12)
    assert len(await imports.events()) == 12


async def test_an_import_that_is_killed_loses_nothing_when_it_goes_on(imports: Imports, many: Path) -> None:
    process = await imports.start(str(many), "--no-wait")
    while not list(imports.folder.glob("state/*.json")):
        assert process.returncode is None, "it ended before it could be killed"
        await asyncio.sleep(0.01)
    process.kill()
    await process.communicate()
    report = await imports.report(str(many))
    assert 0 < report["sent_before"] < MANY
    assert report["sent"] == MANY - report["sent_before"]
    events = await imports.events()
    assert len({event.event_id for event in events}) == MANY
    titles = list(dict.fromkeys(event.title for event in events))
    assert titles == [f"Number {number}" for number in range(MANY)]


async def test_ctrl_c_says_that_nothing_is_lost(imports: Imports, many: Path) -> None:
    process = await imports.start(str(many), "--no-wait")
    while not list(imports.folder.glob("state/*.json")):
        assert process.returncode is None, "it ended before it could be interrupted"
        await asyncio.sleep(0.01)
    process.send_signal(2)
    _, err = await process.communicate()
    assert process.returncode == 130
    assert "the same command goes on from here" in err.decode()
    assert "Traceback" not in err.decode()


async def test_mail_that_others_wrote_is_sent_or_named_with_the_reason(imports: Imports) -> None:
    """CPython's own test messages: broken on purpose in many ways."""
    folder = Path(sysconfig.get_path("stdlib")) / "test" / "test_email" / "data"
    messages = sorted(folder.glob("msg_*.txt"))
    assert len(messages) > 40
    path = imports.folder / "cpython.mbox"
    with path.open("wb") as file:
        for message in messages:
            content = message.read_bytes()
            if not content.startswith(b"From "):
                file.write(b"From test@example.org Mon Jan 12 08:05:00 2026\n")
            file.write(content + b"\n\n")
    skipped = imports.folder / "skipped.jsonl"
    report = await imports.report(str(path), "--report", str(skipped))
    named = [json.loads(line) for line in skipped.read_text().splitlines()]
    assert report["sent"] + len(named) >= len(messages)
    assert len(await imports.events()) == report["sent"]
    assert all(line["where"] and line["reason"] for line in named)


async def test_a_pipe_gets_no_bar_and_the_report_is_on_standard_output(imports: Imports) -> None:
    code, out, err = await imports.run(str(DEMO / "slack-export"), "--no-wait")
    assert code == 0
    assert "Sent       25" in out
    assert "Skipped    1  bookkeeping" in out
    assert "\x1b" not in out + err
    assert "Next:" in err


async def test_a_terminal_gets_a_bar(imports: Imports) -> None:
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *imports.command(str(DEMO / "mail.mbox"), "--no-wait"),
        env=imports.environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = await asyncio.to_thread(_read_all, ours)
    await process.communicate()
    assert process.returncode == 0
    assert "reading" in shown
    assert "100 %" in shown
    assert "12 sent" in shown


def _read_all(descriptor: int) -> str:
    found = b""
    with os.fdopen(descriptor, "rb", buffering=0) as terminal:
        while True:
            try:
                chunk = terminal.read(65536)
            except OSError:  # Linux: the other side is closed
                break
            if not chunk:
                break
            found += chunk
    return found.decode(errors="replace")


async def test_a_path_of_no_known_kind_is_refused_with_what_can_be_read(imports: Imports) -> None:
    path = imports.folder / "notes.bin"
    path.write_bytes(b"\0\1\2")
    code, out, err = await imports.run(str(path))
    assert (code, out) == (1, "")
    assert "mbox" in err


async def test_no_broker_is_told_with_what_to_do(imports: Imports) -> None:
    process = await asyncio.create_subprocess_exec(
        *imports.command(str(DEMO / "mail.mbox")),
        env={
            **imports.environment,
            "STRANDLINE_KAFKA__BOOTSTRAP": "127.0.0.1:1",
            "STRANDLINE_KAFKA__SEND_DEADLINE": "1",
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, err = await process.communicate()
    assert process.returncode == 1
    assert "strandline up" in err.decode()
    assert "Traceback" not in err.decode()
