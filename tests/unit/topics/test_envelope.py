from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topics.envelope import Envelope, header
from topics.errors import Undecodable

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
zones = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))

envelopes = st.builds(
    Envelope,
    id=st.uuids(),
    type=texts,
    source=texts,
    time=st.datetimes(datetime(1900, 1, 2), datetime(9999, 12, 30), timezones=zones),  # noqa: DTZ001
    subject=texts,
    sequence=st.none() | st.integers(0, 2**63),
    traceparent=texts,
)

WHOLE = Envelope(
    id=UUID(int=1),
    type="strandline.remember.runs.v1",
    source="/strandline/intake",
    time=datetime(2026, 3, 2, 9, 30, tzinfo=UTC),
    subject="a run",
    sequence=7,
    traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
)


@given(envelopes)
def test_an_envelope_comes_back_from_its_headers(envelope: Envelope) -> None:
    assert Envelope.read(envelope.headers()) == envelope


def test_the_headers_are_those_of_cloudevents_in_binary_mode() -> None:
    assert dict(WHOLE.headers()) == {
        "content-type": b"application/json",
        "ce_specversion": b"1.0",
        "ce_id": b"00000000-0000-0000-0000-000000000001",
        "ce_type": b"strandline.remember.runs.v1",
        "ce_source": b"/strandline/intake",
        "ce_time": b"2026-03-02T09:30:00Z",
        "ce_subject": b"a run",
        "ce_sequence": b"7",
        "traceparent": b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    }


def test_headers_that_we_do_not_know_are_ignored() -> None:
    assert Envelope.read((("x-other", b"\xff"), *WHOLE.headers())) == WHOLE


@pytest.mark.parametrize(
    "broken",
    [
        ("ce_id", b"not an id"),
        ("ce_time", b"yesterday"),
        ("ce_time", b"2026-03-02T09:30:00"),
        ("ce_sequence", b"seven"),
        ("ce_id", b""),
    ],
)
def test_an_envelope_with_a_broken_attribute_is_refused(broken: tuple[str, bytes]) -> None:
    others = tuple(pair for pair in WHOLE.headers() if pair[0] != broken[0])
    with pytest.raises(Undecodable):
        Envelope.read((broken, *others))


def test_a_record_without_headers_has_no_envelope() -> None:
    with pytest.raises(Undecodable):
        Envelope.read(())


def test_a_single_header_never_raises() -> None:
    assert header((("a", b"\xff1"), ("a", b"2")), "a") == "\N{REPLACEMENT CHARACTER}1"
    assert header((), "a") == ""
