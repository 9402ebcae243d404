"""A native stack's own doings, with a script in a server's place: ports, errors, stubborn processes."""

import re
import socket
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from strandline import stack
from strandline.stack import NativeStack, StackError, ports, state
from tests.unit.strandline.stack.doubles import go_that_builds, in_table, weaviate_like

SERVER = f"""exec {sys.executable} -u -c "
import http.server, signal, sys
class Ready(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
signal.signal(signal.SIGTERM, signal.SIG_IGN if 'deaf' in '$1' else signal.SIG_DFL)
http.server.HTTPServer(('127.0.0.1', int(sys.argv[sys.argv.index('--port') + 1])), Ready).serve_forever()
" "$@"
"""
"""Says that it is ready, as Weaviate does, and no more."""


@pytest.fixture
def native(tmp_path: Path) -> NativeStack:
    return NativeStack(tmp_path / "stack", cache=tmp_path / "cache")


@pytest.fixture(autouse=True)
def _stopped_afterwards(native: NativeStack) -> object:
    yield
    native.delete()


def test_a_server_that_dies_at_once_is_reported_with_its_last_words(
    native: NativeStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_that_builds(tmp_path, "echo the disk is on fire; exit 3", monkeypatch)
    in_table(weaviate_like(), monkeypatch)
    with pytest.raises(StackError) as caught:
        native.start("weaviate")
    assert re.fullmatch(
        rf"Weaviate 1\.37\.10 ended while it was starting\. The last lines of {native.log('weaviate')}:\n"
        r"the disk is on fire\nMend what they say and run `strandline stack up` again; "
        r"`strandline stack logs weaviate` shows more\.",
        str(caught.value),
    )
    assert native.process("weaviate") is None
    with pytest.raises(StackError) as again:
        native.start("weaviate")
    assert str(again.value).count("the disk is on fire") == 1


def test_a_server_that_never_answers_is_reported_at_the_deadline(
    native: NativeStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_that_builds(tmp_path, "echo thinking; exec sleep 600", monkeypatch)
    in_table(weaviate_like(start_timeout=timedelta(milliseconds=300)), monkeypatch)
    with pytest.raises(StackError, match=r"(?s)does not answer after 0 s.*thinking"):
        native.start("weaviate")


def test_up_again_changes_nothing_and_a_killed_server_comes_back_on_its_port(
    native: NativeStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_that_builds(tmp_path, SERVER, monkeypatch)
    in_table(weaviate_like(), monkeypatch)
    addresses = native.up(("weaviate",))
    process = native.process("weaviate")
    assert native.up(("weaviate",)) == addresses
    assert native.process("weaviate") == process

    native.kill("weaviate")
    assert native.process("weaviate") is None
    native.kill("weaviate")
    native.start("weaviate")
    assert native.process("weaviate") != process
    assert native.addresses == addresses


def test_a_server_that_does_not_heed_is_killed_after_its_grace(
    native: NativeStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_that_builds(tmp_path, SERVER.replace("$1", "deaf"), monkeypatch)
    in_table(weaviate_like(stop_grace=timedelta(milliseconds=300)), monkeypatch)
    native.start("weaviate")
    said: list[str] = []
    NativeStack(native.folder, progress=lambda name, line: said.append(line)).stop()
    assert native.process("weaviate") is None
    assert said == ["stopping", "did not stop within 0 s: killing it"]


def test_a_stack_that_stands_still_moves_off_a_port_that_was_taken(
    native: NativeStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_that_builds(tmp_path, SERVER, monkeypatch)
    in_table(weaviate_like(), monkeypatch)
    first = native.up(("weaviate",))
    native.stop()
    with socket.create_server(("127.0.0.1", first.weaviate_http_port)):
        second = native.up(("weaviate",))
    assert second.weaviate_http_port != first.weaviate_http_port
    assert second.kafka_bootstrap == first.kafka_bootstrap


def test_a_stack_that_runs_keeps_its_ports_and_says_who_took_one(
    native: NativeStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_that_builds(tmp_path, SERVER, monkeypatch)
    in_table(weaviate_like(), monkeypatch)
    bolt = int(native.up(("weaviate",)).neo4j_uri.rpartition(":")[2])
    monkeypatch.setattr("strandline.stack.native.install", lambda *_: tmp_path)
    with (
        socket.create_server(("127.0.0.1", bolt)),
        pytest.raises(
            StackError, match=rf"Neo4j cannot start: its bolt port {bolt} is taken by .*\. Stop that program"
        ),
    ):
        native.start("neo4j")


def test_every_stack_has_its_own_ports_and_secrets_and_its_folder_is_private(
    native: NativeStack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_that_builds(tmp_path, SERVER, monkeypatch)
    in_table(weaviate_like(), monkeypatch)
    other = NativeStack(tmp_path / "other", cache=tmp_path / "cache")
    try:
        one, two = native.up(("weaviate",)), other.up(("weaviate",))
        assert one.weaviate_http_port != two.weaviate_http_port
        assert one.weaviate_api_key != two.weaviate_api_key
        assert native.folder.stat().st_mode & 0o777 == 0o700
        other.stop()
        assert native.process("weaviate") is not None
    finally:
        other.delete()


def test_an_unknown_service_is_refused_with_the_known_ones(native: NativeStack) -> None:
    with pytest.raises(StackError, match="No service is called postgres: there are kafka, neo4j, weaviate"):
        native.up(("postgres",))


def test_a_folder_without_a_stack_is_told_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(StackError, match=r"There is no stack in .*`strandline stack up` makes one"):
        stack.status(tmp_path)


def test_a_stack_is_not_run_the_other_way(tmp_path: Path) -> None:
    state.save(tmp_path, state.State("native", state.choose_ports(standard=False)))
    with pytest.raises(StackError, match="was made with --native"):
        stack.open_stack(tmp_path, "docker")
    assert isinstance(stack.open_stack(tmp_path), NativeStack)


def test_only_the_persons_own_stack_takes_the_standard_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda port: True)
    assert state.choose_ports(standard=True)["kafka"]["client"] == 9092
    assert state.choose_ports(standard=False)["kafka"]["client"] != 9092


def test_a_folder_of_a_newer_release_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text('{"format": 2}')
    with pytest.raises(StackError, match="another release"):
        stack.up(tmp_path)
