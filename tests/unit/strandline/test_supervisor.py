"""The supervisor with real child processes: readiness, starting again, giving up, ending."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from strandline import supervisor
from strandline.stack import ports
from strandline.supervisor import Child, kept
from topics.errors import StrandlineError

GRACE = timedelta(seconds=20)

SERVER = """
import http.server, os, signal, sys
print("child", os.getpid(), flush=True)
signal.signal(signal.SIGTERM, lambda *_: (print("asked to end", flush=True), sys.exit(0)))
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Ready).serve_forever()
"""
FAILS = "print('no such topic'); raise SystemExit(3)"
STUBBORN = SERVER.replace("sys.exit(0)", "None")


class Heard:
    """What was said, and a way to wait for it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._more = asyncio.Event()

    def __call__(self, name: str, line: str) -> None:
        self.lines.append(f"{name}: {line}")
        self._more.set()

    async def until(self, holds: Callable[[list[str]], bool]) -> None:
        async with asyncio.timeout(60):
            while not holds(self.lines):
                self._more.clear()
                await self._more.wait()

    def pids(self) -> list[int]:
        return [int(line.rpartition(" ")[2]) for line in self.lines if ": child " in line]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "_BACKOFF", (timedelta(milliseconds=1), timedelta(milliseconds=2)))
    monkeypatch.setattr(supervisor, "_LAST_WORDS", timedelta(milliseconds=200))


def child(code: str, heard: Heard, name: str = "serve") -> Child:
    port = ports.choose(0, prefer_standard=False, taken=())
    return Child(name, [sys.executable, "-c", code, str(port)], {}, f"http://127.0.0.1:{port}/ready", heard)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_children_are_ready_inside_and_gone_afterwards() -> None:
    heard = Heard()
    async with kept([child(SERVER, heard, "serve"), child(SERVER, heard, "worker 1")], grace=GRACE):
        assert {"serve: ready", "worker 1: ready"} <= set(heard.lines)
        assert all(map(alive, heard.pids()))
    assert len(heard.pids()) == 2
    assert not any(map(alive, heard.pids()))
    assert {"serve: asked to end", "worker 1: asked to end"} <= set(heard.lines)
    assert not any("starting it again" in line for line in heard.lines)


async def test_a_child_of_the_child_that_holds_the_output_open_hides_no_end() -> None:
    heard = Heard()
    outlives = SERVER.replace("import http", "import subprocess; subprocess.Popen(['sleep', '20']); import http", 1)
    async with kept([child(outlives, heard)], grace=GRACE):
        os.kill(heard.pids()[0], signal.SIGKILL)
        await heard.until(lambda _: len(heard.pids()) == 2)


async def test_a_child_that_is_killed_is_started_again() -> None:
    heard = Heard()
    async with kept([child(SERVER, heard)], grace=GRACE):
        os.kill(heard.pids()[0], signal.SIGKILL)
        await heard.until(lambda _: len(heard.pids()) == 2)
        assert any("ended with -9; starting it again" in line for line in heard.lines)


async def test_a_child_that_never_gets_ready_ends_the_start_with_its_last_words() -> None:
    heard = Heard()
    with pytest.raises(StrandlineError, match=r"serve ended 3 times before it was ready(.|\n)*no such topic"):
        async with kept([child(FAILS, heard)], grace=GRACE):
            raise AssertionError("entered")


async def test_one_that_fails_takes_the_others_down_with_it() -> None:
    heard = Heard()
    with pytest.raises(StrandlineError, match="worker 1 ended"):
        async with kept([child(SERVER, heard, "serve"), child(FAILS, heard, "worker 1")], grace=GRACE):
            raise AssertionError("entered")
    assert not any(map(alive, heard.pids()))


async def test_a_child_that_does_not_end_is_killed() -> None:
    heard = Heard()
    async with kept([child(STUBBORN, heard)], grace=timedelta(seconds=0.5)):
        pass
    assert "serve: still there after 0.5 s: killing it" in heard.lines
    assert not any(map(alive, heard.pids()))


async def test_a_line_without_end_is_told_in_pieces() -> None:
    heard = Heard()
    long = SERVER.replace('print("child"', 'print("x" * 1_000_000, flush=True); print("child"')
    async with kept([child(long, heard)], grace=GRACE):
        pass
    said = [line.removeprefix("serve: ") for line in heard.lines if "xxx" in line]
    assert sum(map(len, said)) == 1_000_000
    assert len(said) > 1


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's death")
async def test_children_end_when_the_supervisor_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "parent.py"
    script.write_text(
        f"""
import asyncio, sys
sys.path.insert(0, {str(Path(supervisor.__file__).parents[1])!r})
from datetime import timedelta
from strandline.supervisor import Child, kept
from strandline.stack import ports
port = ports.choose(0, prefer_standard=False, taken=())
async def main():
    child = Child("serve", [sys.executable, "-c", {SERVER!r}, str(port)], {{}}, f"http://127.0.0.1:{{port}}/ready", lambda name, line: print(line, flush=True))
    async with kept([child], grace=timedelta(seconds=5)):
        await asyncio.Event().wait()
asyncio.run(main())
"""
    )
    parent = await asyncio.create_subprocess_exec(sys.executable, str(script), stdout=asyncio.subprocess.PIPE)
    assert parent.stdout is not None
    pid = int((await parent.stdout.readline()).split()[1])
    while await parent.stdout.readline() != b"ready\n":
        pass
    # A handle that becomes readable when the process ends, whoever its parent is by then.
    ended = asyncio.Event()
    handle = os.pidfd_open(pid)
    try:
        asyncio.get_running_loop().add_reader(handle, ended.set)
        parent.kill()
        await asyncio.wait_for(ended.wait(), 30)
        asyncio.get_running_loop().remove_reader(handle)
    finally:
        os.close(handle)
    await parent.wait()
