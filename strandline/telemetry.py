"""Logs: one event name plus fields a line, JSON or for eyes, on standard error. Secrets are blotted out, whoever logs them.

    configure_logging("json", "info")          # once, first thing in a process

A line has `event`, `level`, `logger`, `at` (UTC), and where bound `trace_id`, `run_id`, `stage`. A user's text is never logged; that is the
duty of whoever logs. What is blotted out here are the shapes of credentials, should an error's text carry one.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from typing import IO, Any, Final, Literal

import structlog

Format = Literal["auto", "json", "text"]
Level = Literal["debug", "info", "warning", "error"]

BLOT: Final = "[redacted]"

_SECRET_FIELD = re.compile(
    r"(password|passwd|secret|token|api_?key|authorization|cookie|credentials?|private_key)$", re.IGNORECASE
)
_PUBLIC_FIELDS: Final = frozenset({"input_tokens", "output_tokens", "idempotency_key"})

_SECRETS: Final = re.compile(
    r"""
    (?P<url>(?<=://)[^/\s:@]*:[^/\s@]+(?=@))                      # user and password in an address
    | (?P<bearer>\b(?i:bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,})    # RFC 6750, RFC 7617
    | (?P<jwt>\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*)
    | (?P<vendor>\b(?:sk-[A-Za-z0-9_-]{16,}                       # Anthropic, OpenAI
        | xox[abeoprs]-[A-Za-z0-9-]{8,} | xapp-[A-Za-z0-9-]{8,}   # Slack
        | gh[opsur]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,}
        | AIza[A-Za-z0-9_-]{30,} | ya29\.[A-Za-z0-9_-]{16,} | GOCSPX-[A-Za-z0-9_-]{16,}   # Google
        | AKIA[A-Z0-9]{16}))                                      # AWS
    | (?P<pem>-----BEGIN\ [A-Z ]*PRIVATE\ KEY-----(?s:.*?)(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z))
    | (?P<pair>(?i:password|passwd|secret|api[_-]?key|access_token|refresh_token)["']?\s*[=:]\s*["']?[^\s"',;&]+)
    """,
    re.VERBOSE,
)

_QUIET: Final[Mapping[str, int]] = {
    # What these say at lower levels repeats what our own events say, or every request.
    "aiohttp": logging.WARNING,
    "aiokafka": logging.WARNING,
    "anthropic": logging.WARNING,
    "asyncio": logging.WARNING,
    "faust": logging.WARNING,
    "grpc": logging.WARNING,
    "httpcore": logging.WARNING,
    "httpx": logging.WARNING,
    "kafka": logging.WARNING,
    "mode": logging.WARNING,
    "neo4j": logging.WARNING,
    "neo4j.notifications": logging.ERROR,
    "openai": logging.WARNING,
    "urllib3": logging.WARNING,
    "weaviate": logging.WARNING,
}


def configure_logging(format_: Format = "auto", level: Level = "info", stream: IO[str] | None = None) -> None:
    """Sets up structlog and the standard library's logging alike. `auto`: text if the stream (standard error) is a terminal, else JSON."""
    out = sys.stderr if stream is None else stream
    as_text = format_ == "text" or (format_ == "auto" and out.isatty())
    shared: list[structlog.types.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, *shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=_rendering(as_text, out))
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name, least in _QUIET.items():
        logging.getLogger(name).setLevel(max(least, logging.getLevelName(level.upper())))
    logging.captureWarnings(True)


def _rendering(as_text: bool, out: IO[str]) -> list[structlog.types.Processor]:
    clean = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if as_text:
        # The exception becomes text first, so that it is blotted as well.
        console = structlog.dev.ConsoleRenderer(colors=out.isatty(), timestamp_key="at", pad_event_to=24)
        return [clean, structlog.processors.format_exc_info, redact, console]
    return [clean, structlog.processors.format_exc_info, redact, structlog.processors.JSONRenderer(ensure_ascii=False)]


def redact(_: object, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A structlog processor: blots fields that are named like secrets, and what looks like one anywhere in the rest."""
    return {name: BLOT if _is_secret(name, value) else _blotted(value) for name, value in event.items()}


def _is_secret(name: str, value: object) -> bool:
    return name not in _PUBLIC_FIELDS and value not in (None, "") and _SECRET_FIELD.search(name) is not None


def _blotted(value: Any) -> Any:
    if isinstance(value, str):
        return _SECRETS.sub(BLOT, value)
    if isinstance(value, bytes):
        return _SECRETS.sub(BLOT, value.decode("utf-8", "replace"))
    if isinstance(value, Mapping):
        return dict(_blotted_items(value))
    if isinstance(value, list | tuple | set | frozenset):
        return [_blotted(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float) else _SECRETS.sub(BLOT, str(value))


def _blotted_items(values: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        yield str(name), BLOT if _is_secret(str(name), value) else _blotted(value)
