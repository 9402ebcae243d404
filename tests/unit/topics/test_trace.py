"""The trace header, after the W3C recommendation's own rules."""

from __future__ import annotations

import pytest

from topics.trace import child_of, new_trace, trace_id

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


def test_a_child_keeps_trace_and_flags_and_has_a_span_of_its_own() -> None:
    child = child_of(PARENT)
    assert child != PARENT
    assert child.split("-")[:2] == PARENT.split("-")[:2]
    assert child.split("-")[3] == "00"
    assert trace_id(child_of(child)) == trace_id(PARENT)


@pytest.mark.parametrize(
    "wrong",
    [
        "",
        "nonsense",
        PARENT.upper(),
        PARENT.replace("00-0af", "ff-0af"),
        "00-" + "0" * 32 + "-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-" + "0" * 16 + "-01",
    ],
)
def test_what_is_no_traceparent_begins_a_new_trace(wrong: str) -> None:
    assert trace_id(wrong) == ""
    assert len(trace_id(child_of(wrong))) == 32


def test_two_traces_differ() -> None:
    assert trace_id(new_trace()) != trace_id(new_trace())
