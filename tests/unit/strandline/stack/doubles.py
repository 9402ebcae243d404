"""Stand-ins for the programs the stack calls: small shell scripts, put first on PATH."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.stack.services import SERVICES, WEAVIATE, GoCommand, Service


def script(path: Path, text: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def first_on_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def go_that_builds(folder: Path, server: str, monkeypatch: pytest.MonkeyPatch, *, delay: str = "") -> Path:
    """A `go` that "builds" a server out of the script `server`, and notes each build in the returned file."""
    notes = folder / "builds"
    binary = script(folder / "server", server)
    script(
        folder / "bin" / "go",
        f'[ "$1" = version ] && {{ echo go version go1.26.0; exit; }}\n'
        f'echo "$@" >> {notes}; echo go: downloading example.org/module v1; {delay}\n'
        f'cp {binary} "$GOBIN/weaviate-server"',
    )
    first_on_path(folder / "bin", monkeypatch)
    return notes


def weaviate_like(**changes: object) -> Service:
    """Weaviate's row with some fields changed; it asks for no real disk space."""
    assert isinstance(WEAVIATE.install, GoCommand)
    return replace(WEAVIATE, install=replace(WEAVIATE.install, build_bytes=1), **changes)  # type: ignore[arg-type]


def in_table(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SERVICES, service.name, service)
