"""Settings: where a value comes from, and what refuses the start."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from strandline import setting_rows, settings
from topics.errors import Refused


@pytest.fixture(autouse=True)
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """No variable, no .env and no running stack of whoever runs the tests."""
    for name in [name for name in os.environ if name.startswith(settings.PREFIX)]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STRANDLINE_STACK_FOLDER", str(tmp_path / "stack"))
    settings.load.cache_clear()
    yield tmp_path
    settings.load.cache_clear()


def running_stack(folder: Path) -> None:
    """The files of a stack whose services this very process claims to be."""
    ports = {
        "kafka": {"client": 19092, "controller": 19093},
        "neo4j": {"bolt": 17687},
        "weaviate": {"http": 18080, "grpc": 15051},
    }
    folder.mkdir()
    (folder / "state.json").write_text(json.dumps({"format": 1, "mode": "docker", "ports": ports}))
    (folder / "neo4j.password").write_text("planted-password\n")


def origin_of(name: str) -> str:
    return next(row.origin for row in setting_rows.setting_rows() if row.name == name)


def test_the_environment_wins_over_the_file(nothing_set: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (nothing_set / ".env").write_text("STRANDLINE_USER=file\nSTRANDLINE_DATASET=file\n")
    monkeypatch.setenv("STRANDLINE_USER", "shell")
    loaded = settings.load()
    assert (loaded.user, loaded.dataset) == ("shell", "file")
    assert (origin_of("STRANDLINE_USER"), origin_of("STRANDLINE_DATASET")) == ("environment", ".env")


def test_a_misspelt_name_is_refused_with_the_right_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRANDLINE_KAFKA__BOOTSTRP", "x:1")
    with pytest.raises(Refused, match="did you mean STRANDLINE_KAFKA__BOOTSTRAP"):
        settings.load()


def test_a_misspelt_name_in_the_file_is_refused_too(nothing_set: Path) -> None:
    (nothing_set / ".env").write_text("STRANDLINE_NEO4J_PASSWORD=hidden\n")
    with pytest.raises(Refused, match=r"in the \.env\); did you mean STRANDLINE_NEO4J__PASSWORD") as refused:
        settings.load()
    assert "hidden" not in str(refused.value)


def test_a_wrong_value_names_its_variable_and_shows_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRANDLINE_API__PORT", "secret-looking")
    with pytest.raises(Refused, match="STRANDLINE_API__PORT") as refused:
        settings.load()
    assert "secret-looking" not in str(refused.value)


@pytest.mark.parametrize("written", ["90", "90.0", "PT1M30S", "00:01:30"])
def test_a_duration_is_written_in_seconds_or_as_iso_8601(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRANDLINE_MODEL__TIMEOUT", written)
    assert settings.load().model.timeout == timedelta(seconds=90)


def test_a_running_stack_gives_the_addresses_of_services_that_are_not_named(nothing_set: Path) -> None:
    running_stack(nothing_set / "stack")
    loaded = settings.load()
    assert loaded.kafka.bootstrap == "127.0.0.1:19092"
    assert loaded.neo4j.uri == "bolt://127.0.0.1:17687"
    assert loaded.neo4j.password is not None
    assert loaded.neo4j.password.get_secret_value() == "planted-password"
    assert origin_of("STRANDLINE_NEO4J__URI") == "running stack"
    assert origin_of("STRANDLINE_NEO4J__DATABASE") == "default"


def test_a_service_that_is_named_gets_no_password_from_the_running_stack(
    nothing_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running_stack(nothing_set / "stack")
    monkeypatch.setenv("STRANDLINE_NEO4J__URI", "bolt://db.example:7687")
    loaded = settings.load()
    assert loaded.neo4j.password is None
    assert loaded.kafka.bootstrap == "127.0.0.1:19092"
    assert origin_of("STRANDLINE_NEO4J__PASSWORD") == "default"


def test_no_secret_is_shown(nothing_set: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    running_stack(nothing_set / "stack")
    monkeypatch.setenv("STRANDLINE_OPENAI_API_KEY", "planted-key")
    monkeypatch.setenv("STRANDLINE_WEAVIATE__HTTP_URL", "http://ann:planted-word@index.example:80")
    assert "planted" not in repr(setting_rows.setting_rows())
    rows = {row.name: row.value for row in setting_rows.setting_rows()}
    assert rows["STRANDLINE_OPENAI_API_KEY"] == rows["STRANDLINE_NEO4J__PASSWORD"] == setting_rows.MASK
    assert rows["STRANDLINE_WEAVIATE__HTTP_URL"] == f"http://{setting_rows.MASK}@index.example:80"


def test_every_setting_says_what_it_is() -> None:
    assert [row.name for row in setting_rows.default_rows() if not row.description.endswith((".", ")"))] == []


def test_changes_are_laid_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRANDLINE_KAFKA__PREFIX", "staging.")
    monkeypatch.setenv("STRANDLINE_USER", "ada")
    changed = settings.with_changes({"STRANDLINE_KAFKA__BOOTSTRAP": "x:1", "STRANDLINE_USER": "demo"})
    assert (changed.kafka.bootstrap, changed.kafka.prefix, changed.user) == ("x:1", "staging.", "demo")


def test_services_whose_address_is_set_are_not_ours_to_start(monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings.unnamed_services() == ("kafka", "neo4j", "weaviate")
    monkeypatch.setenv("STRANDLINE_NEO4J__URI", "bolt://db.example:7687")
    assert settings.unnamed_services() == ("kafka", "weaviate")
