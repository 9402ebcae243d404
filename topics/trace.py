"""W3C Trace Context, the part that travels on records: `traceparent`, level 1 (https://www.w3.org/TR/trace-context/)."""

from __future__ import annotations

import random
import re

_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(?:-.*)?")


def new_trace() -> str:
    """The `traceparent` of a trace that begins here; sampled."""
    return f"00-{random.getrandbits(128) | 1:032x}-{_span_id()}-01"


def child_of(traceparent: str) -> str:
    """The same trace and flags with a span of its own; a new trace for "" or what is no `traceparent`, as the standard asks."""
    parts = _TRACEPARENT.fullmatch(traceparent)
    if parts is None:
        return new_trace()
    return f"00-{parts[1]}-{_span_id()}-{parts[2]}"


def trace_id(traceparent: str) -> str:
    """32 hexadecimal digits, for log lines; "" for what is no `traceparent`."""
    parts = _TRACEPARENT.fullmatch(traceparent)
    return parts[1] if parts is not None else ""


def _span_id() -> str:
    return f"{random.getrandbits(64) | 1:016x}"
