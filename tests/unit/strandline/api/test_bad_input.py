"""Bad input: each kind has its status, a clear text and a code, and leaves nothing on the log."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from strandline.api.call import MAX_BODY_BYTES
from tests.doubles.server import Bench, running

JSON = {"Content-Type": "application/json"}
MIB = 1_048_576


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with running() as bench:
        yield bench


async def refused(
    bench: Bench, raw: bytes, headers: dict[str, str] = JSON, path: str = "/v1/remember"
) -> tuple[int, Any]:
    """Status and body of a post; checks what all refusals have in common."""
    before = bench.log.size
    async with bench.http.post(
        path, data=io.BytesIO(raw), headers=headers, skip_auto_headers=["Content-Type"]
    ) as answer:
        told = await answer.json()
    assert answer.content_type == "application/json"
    assert told["error"]
    assert told["code"]
    assert "Traceback" not in told["error"]
    assert bench.log.size == before == 0
    return answer.status, told


def with_(**fields: object) -> bytes:
    return json.dumps({"user_id": "ada", "text": "x"} | fields).encode()


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        ({"text": ""}, "text", "at least 1 character"),
        ({"text": " \n\t "}, "text", "empty or blank"),
        ({"text": "a\0b"}, "text", "NUL"),
        ({"text": 5}, "text", "string"),
        ({"text": None}, "text", "string"),
        ({"text": ["a"]}, "text", "string"),
        ({"user_id": ""}, "user_id", "empty"),
        ({"user_id": "a\nb"}, "user_id", "control characters"),
        ({"user_id": "a\x7fb"}, "user_id", "control characters"),
        ({"user_id": "é" * 65}, "user_id", "130 bytes"),
        ({"user_id": True}, "user_id", "string"),
        ({"dataset": ""}, "dataset", "empty"),
        ({"dataset": "a\u0085b"}, "dataset", "control characters"),
        ({"dataset": "x" * 129}, "dataset", "129 bytes"),
        ({"session_id": "x" * 129}, "session_id", "129 bytes"),
        ({"session_id": "a\r\nb"}, "session_id", "control characters"),
        ({"title": "two\nlines"}, "title", "control characters"),
        ({"author": "x" * 200}, "author", "200 bytes"),
        ({"kind": "note"}, "kind", "knowledge"),
        ({"kind": "Web_Search"}, "kind", "pipeline only"),
        ({"kind": "series_observation"}, "kind", "pipeline only"),
        ({"kind": "chunk_summary"}, "kind", "pipeline only"),
        ({"reference_time": "2025-13-01"}, "reference_time", "RFC 3339"),
        ({"reference_time": "last Friday"}, "reference_time", "RFC 3339"),
        ({"reference_time": "2025-03-01T09:30:00"}, "reference_time", "zone"),
        ({"reference_time": "2025-02-30T09:30:00Z"}, "reference_time", "day"),
        ({"reference_time": 1740821400}, "reference_time", "RFC 3339"),
        ({"reference_time": "0001-01-01T00:00:00+05:00"}, "reference_time", "years"),
        ({"reference_time": "9999-12-31T23:59:59-05:00"}, "reference_time", "years"),
        ({"tags": "work"}, "tags", "array"),
        ({"tags": {"work": 1}}, "tags", "array"),
        ({"tags": ["work", 5]}, "tags.1", "string"),
        ({"tags": ["a\nb"]}, "tags.0", "control characters"),
        ({"tags": ["t"] * 65}, "tags", "64"),
        ({"idempotency_key": ""}, "idempotency_key", "pattern"),
        ({"idempotency_key": "a b"}, "idempotency_key", "pattern"),
        ({"idempotency_key": "a\n"}, "idempotency_key", "pattern"),
        ({"idempotency_key": "k" * 257}, "idempotency_key", "pattern"),
        ({"idempotency_key": "ключ"}, "idempotency_key", "pattern"),
    ],
)
async def test_a_field_that_breaks_its_rule_is_named(
    bench: Bench, fields: dict[str, object], field: str, says: str
) -> None:
    status, told = await refused(bench, with_(**fields))
    assert (status, told["code"], told["field"]) == (422, "refused", field)
    assert says in told["error"]


@pytest.mark.parametrize("missing", ["user_id", "text"])
async def test_a_needed_field_that_is_missing_is_named(bench: Bench, missing: str) -> None:
    fields = {name: value for name, value in {"user_id": "ada", "text": "x"}.items() if name != missing}
    status, told = await refused(bench, json.dumps(fields).encode())
    assert (status, told["field"]) == (422, missing)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b'{"user_id":"ada","text":"x",}',
        b"{'user_id':'ada'}",
        b"\xff\xfe",
        b'\xef\xbb\xbf{"user_id":"ada","text":"x"}',
        b'{"user_id":"ada","text":"\\ud800"}',
        b'{"user_id":"ada","text":"\xff"}',
        b'{"user_id":"ada","text":"a\nb"}',
        b"[" * 100_000,
        b'{"user_id":"ada","text":"x","deep":' + b"[" * 5000 + b"]" * 5000 + b"}",
    ],
    ids=[
        "nothing",
        "open",
        "comma",
        "quotes",
        "utf16",
        "bom",
        "surrogate",
        "latin1",
        "raw newline",
        "brackets",
        "deep",
    ],
)
async def test_what_is_no_json_is_400(bench: Bench, raw: bytes) -> None:
    status, told = await refused(bench, raw)
    assert (status, told["code"]) == (400, "bad_json")


@pytest.mark.parametrize("raw", [b"[]", b'"text"', b"null", b"5", b'[{"user_id":"ada","text":"x"}]'])
async def test_json_that_is_no_object_is_refused(bench: Bench, raw: bytes) -> None:
    status, told = await refused(bench, raw)
    assert (status, told["code"]) == (422, "refused")


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "application/json; charset=latin-1"},
    ],
)
async def test_a_body_that_is_not_declared_as_json_is_415(bench: Bench, headers: dict[str, str]) -> None:
    status, told = await refused(bench, with_(), headers)
    assert (status, told["code"]) == (415, "unsupported_media_type")
    assert "application/json" in told["error"]


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "GZIP", "gzip, deflate", "unheard-of"])
@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("size", [20, 200_000])
async def test_an_encoded_body_is_415_whether_or_not_it_is_one(
    bench: Bench, caplog: pytest.LogCaptureFixture, encoding: str, packed: bool, size: int
) -> None:
    raw = with_(text="x" * size)
    raw = gzip.compress(raw) if packed else raw
    status, told = await refused(bench, raw, {"Content-Type": "application/json", "Content-Encoding": encoding})
    assert (status, told["code"]) == (415, "unsupported_media_type")
    assert "Content-Encoding" in told["error"]
    assert not [record for record in caplog.records if record.exc_info]


async def test_identity_is_no_encoding(bench: Bench) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "identity"}
    async with bench.http.post("/v1/remember", data=with_(), headers=headers) as answer:
        assert answer.status == 202


@pytest.mark.parametrize(
    "char", ["x", "é", "€", "😀", "\x01"], ids=["1 byte", "2 bytes", "3 bytes", "4 bytes", "escaped"]
)
async def test_a_text_of_exactly_one_mebibyte_is_accepted_and_one_byte_more_is_not(bench: Bench, char: str) -> None:
    size = len(char.encode())
    exact = "x" * (MIB % size) + char * (MIB // size)
    assert len(exact.encode()) == MIB
    status, told = await refused(bench, with_(text=exact + "x"))
    assert (status, told["code"], told["field"]) == (413, "too_large", "text")
    assert "1,048,577" in told["error"]
    async with bench.http.post("/v1/remember", data=io.BytesIO(with_(text=exact)), headers=JSON) as answer:
        assert answer.status == 202


async def test_a_body_over_the_limit_is_413_before_it_is_read(bench: Bench) -> None:
    status, told = await refused(bench, with_(text="x" * MAX_BODY_BYTES))
    assert (status, told["code"]) == (413, "too_large")


async def test_a_body_over_the_limit_is_413_also_when_its_length_is_not_declared(bench: Bench) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(0, MAX_BODY_BYTES + MIB, MIB):
            yield b" " * MIB

    async with bench.http.post("/v1/remember", data=endless(), headers=JSON) as answer:
        assert (answer.status, (await answer.json())["code"]) == (413, "too_large")
    assert bench.log.size == 0


async def test_unknown_fields_change_nothing(bench: Bench) -> None:
    async with bench.http.post("/v1/remember", data=with_(zzz={"a": [1]}, run_id="mine"), headers=JSON) as answer:
        assert answer.status == 202
    assert b"zzz" not in (bench.log.raw("remember.requests")[0].value or b"")


async def test_kind_is_taken_in_any_letter_case(bench: Bench) -> None:
    async with bench.http.post("/v1/remember", data=with_(kind="EPISODE"), headers=JSON) as answer:
        assert answer.status == 202
    assert b'"kind":"episode"' in (bench.log.raw("remember.requests")[0].value or b"")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("wait=done", "wait"),
        ("wait=complete&deadline_ms=0", "deadline_ms"),
        ("wait=complete&deadline_ms=soon", "deadline_ms"),
        ("wait=complete&deadline_ms=99999999999999999999", "deadline_ms"),
        ("deadline_ms=5", "deadline_ms"),
        ("waits=complete", "waits"),
        ("wait=complete&wait=queryable", "wait"),
    ],
)
async def test_a_parameter_that_breaks_its_rule_is_named(bench: Bench, query: str, field: str) -> None:
    status, told = await refused(bench, with_(), path=f"/v1/remember?{query}")
    assert (status, told["field"]) == (422, field)


@pytest.mark.parametrize(
    ("path", "status", "field"),
    [
        ("/v1/runs", 422, "user_id"),
        ("/v1/runs?user_id=", 422, "user_id"),
        ("/v1/runs?user_id=a%00b", 422, "user_id"),
        ("/v1/runs?user_id=ada&limit=0", 422, "limit"),
        ("/v1/runs?user_id=ada&limit=201", 422, "limit"),
        ("/v1/runs?user_id=ada&limit=many", 422, "limit"),
        ("/v1/runs?user_id=ada&state=done", 422, "state"),
        ("/v1/runs?user_id=ada&cursor=nonsense", 422, "cursor"),
        ("/v1/runs/not-a-uuid?user_id=ada", 422, "run_id"),
        ("/v1/runs/6d4f7f0c-52a3-5c1e-9a52-0f6f6f9f7a11", 422, "user_id"),
        ("/v1/runs/6d4f7f0c-52a3-5c1e-9a52-0f6f6f9f7a11?user_id=ada", 404, "run_id"),
        ("/v1/events", 422, "user_id"),
        ("/v1/events?user_id=ada&after=nonsense", 422, "Last-Event-ID"),
        ("/v2/remember", 404, None),
        ("/", 404, None),
        ("/v1/remember/", 404, None),
    ],
)
async def test_reads_are_checked_alike(bench: Bench, path: str, status: int, field: str | None) -> None:
    async with bench.http.get(path) as answer:
        told = await answer.json()
    assert (answer.status, told.get("field")) == (status, field)
    assert told["error"]
    assert told["code"]


@pytest.mark.parametrize(
    ("fields", "status", "field"),
    [
        ({"dataset": "unknown"}, 404, "dataset"),
        ({"query": ""}, 422, "query"),
        ({"query": "a\0"}, 422, "query"),
        ({"query": "x" * 4097}, 422, "query"),
        ({"limit": 0}, 422, "limit"),
        ({"limit": 101}, 422, "limit"),
        ({"limit": "5"}, 422, "limit"),
        ({"limit": 5.5}, 422, "limit"),
        ({"as_of": "2025-01-01"}, 422, "as_of"),
        ({"known_at": "yesterday"}, 422, "known_at"),
    ],
)
async def test_a_question_is_checked_alike(bench: Bench, fields: dict[str, object], status: int, field: str) -> None:
    raw = json.dumps({"user_id": "ada", "query": "x"} | fields).encode()
    got, told = await refused(bench, raw, path="/v1/search")
    assert (got, told["field"]) == (status, field)


async def test_a_wrong_method_is_405_and_says_which_are_right(bench: Bench) -> None:
    async with bench.http.put("/v1/remember", data=with_(), headers=JSON) as answer:
        assert (answer.status, (await answer.json())["code"]) == (405, "method_not_allowed")
        assert answer.headers["Allow"] == "POST"


@pytest.mark.parametrize(
    "head",
    [
        b"GET /live HTTP/1.1\r\nHost: localhost\r\nX-Big: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"POST /v1/remember HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/remember HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /live HTTP/1.1\r\nHost: localhost\r\nBad\0Name: x\r\n\r\n",
    ],
    ids=["huge header", "huge path", "no request", "negative length", "two lengths", "NUL in a header"],
)
async def test_what_is_no_http_request_is_400_in_the_same_body(bench: Bench, head: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(bench.url.rsplit(":", 1)[1]))
    try:
        writer.write(head)
        answer = await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()
        await writer.wait_closed()
    top, _, raw = answer.partition(b"\r\n\r\n")
    assert top.split(b" ")[1] == b"400"
    assert json.loads(raw)["code"] == "bad_request"
    assert bench.log.size == 0
    async with bench.http.get("/live") as alive:
        assert alive.status == 200
