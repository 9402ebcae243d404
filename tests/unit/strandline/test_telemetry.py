"""Logs: every line parses, has its event, and shows no secret, whoever logged it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from strandline.telemetry import BLOT, configure_logging

SECRETS = [
    "sk-ant-api03-AbCdEfGhIjKlMnOpQrStUvWxYz",
    "sk-proj-0123456789abcdefghijkl",
    "xoxb-1234567890-abcdefghij",
    "ghp_0123456789abcdefghijABCDEFGHIJ012345",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc-def_ghi",
    "Bearer abcdefghijklmnop",
    "neo4j:hunter2secret",
    "password=hunter2secret",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQ\n-----END RSA PRIVATE KEY-----",
]


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = io.StringIO()
    configure_logging("json", "debug", stream)
    yield stream
    root.handlers[:], level = before
    root.setLevel(level)
    logging.captureWarnings(False)
    structlog.reset_defaults()


def parsed(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_has_its_event_level_logger_time_and_fields(lines: io.StringIO) -> None:
    with structlog.contextvars.bound_contextvars(run_id="r-1"):
        structlog.get_logger("agents.writer").warning("stage.finished", stage="writer", offset=7)
    (line,) = parsed(lines)
    assert line["at"].endswith("Z")
    assert {name: line[name] for name in ("event", "level", "logger", "stage", "offset", "run_id")} == {
        "event": "stage.finished",
        "level": "warning",
        "logger": "agents.writer",
        "stage": "writer",
        "offset": 7,
        "run_id": "r-1",
    }


def test_lines_of_the_standard_librarys_logging_are_the_same(lines: io.StringIO) -> None:
    logging.getLogger("elsewhere").error("it failed: %s", 5)
    (line,) = parsed(lines)
    assert (line["event"], line["level"], line["logger"]) == ("it failed: 5", "error", "elsewhere")


@pytest.mark.parametrize("secret", SECRETS)
def test_what_looks_like_a_secret_is_blotted_out_wherever_it_stands(lines: io.StringIO, secret: str) -> None:
    logger = structlog.get_logger("x")
    held = f"bolt://{secret}@host" if secret.startswith("neo4j:") else f"before {secret} after"
    logger.info("event", text=held, nested={"deep": [held, {"deeper": held}]}, raw=held.encode())
    logging.getLogger("y").warning("said %s", held)
    try:
        raise ValueError(held)
    except ValueError:
        logger.exception("failed")
    page = lines.getvalue()
    assert secret not in page
    assert secret.split("\n")[0].split(":")[-1].split("=")[-1].removeprefix("Bearer ") not in page or "BEGIN" in secret
    assert "MIIEpAIBAAKCAQ" not in page
    assert BLOT in page
    assert len(parsed(lines)) == 3


@pytest.mark.parametrize(
    "name", ["password", "neo4j_password", "api_key", "Authorization", "access_token", "client_secret"]
)
def test_a_field_named_like_a_secret_is_blotted_out(lines: io.StringIO, name: str) -> None:
    structlog.get_logger("x").info("event", **{name: "plain words"}, headers={name: "plain words"})
    assert "plain words" not in lines.getvalue()


def test_figures_and_keys_that_are_no_secrets_stay(lines: io.StringIO) -> None:
    structlog.get_logger("x").info("event", input_tokens=5, idempotency_key="mail-4711", ok=True, nothing=None)
    (line,) = parsed(lines)
    assert (line["input_tokens"], line["idempotency_key"], line["ok"], line["nothing"]) == (5, "mail-4711", True, None)


def test_chatty_libraries_are_quiet_and_ours_are_not(lines: io.StringIO) -> None:
    for name in ("aiokafka.consumer", "neo4j.pool", "httpx", "agents.writer"):
        logging.getLogger(name).info("hello")
    assert [line["logger"] for line in parsed(lines)] == ["agents.writer"]


def test_text_for_eyes_shows_the_fields_and_no_secret() -> None:
    stream = io.StringIO()
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        configure_logging("text", "info", stream)
        structlog.get_logger("x").info("stage.finished", stage="writer", key=SECRETS[0])
        assert "stage.finished" in stream.getvalue()
        assert "stage=writer" in stream.getvalue()
        assert SECRETS[0] not in stream.getvalue()
    finally:
        root.handlers[:], level = before
        root.setLevel(level)
        logging.captureWarnings(False)
        structlog.reset_defaults()
