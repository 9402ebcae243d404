"""The OpenAPI document: valid, up to date, with examples that are taken; and whatever is sent is answered as it says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openapi_spec_validator import OpenAPIV31SpecValidator
from yarl import URL

from strandline.api.openapi import PATH, document, text
from strandline.api.routes import ROUTES, Route
from tests.doubles.server import Bench, running

ROOT = Path(__file__).parents[4]
DOCUMENT = document()


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with running() as bench:
        yield bench


def test_the_document_is_valid_openapi_3_1() -> None:
    OpenAPIV31SpecValidator(json.loads(text())).validate()


def test_the_file_in_docs_is_up_to_date() -> None:
    assert (ROOT / PATH).read_text() == text(), "run python -m strandline.api.openapi"


def test_every_route_is_in_the_document_with_its_errors_and_words() -> None:
    for route in ROUTES:
        operation = DOCUMENT["paths"][route.path][route.method.lower()]
        assert operation["summary"]
        assert operation["description"]
        assert {"401", "403", "500"} < set(operation["responses"])
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                assert answer["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/ErrorBody"}


def test_every_field_that_a_caller_may_send_is_described() -> None:
    for name in ("RememberBody", "SearchBody"):
        for field, rule in DOCUMENT["components"]["schemas"][name]["properties"].items():
            assert rule.get("description"), f"{name}.{field}"


async def test_the_server_gives_the_document_and_a_page_that_needs_nothing_from_elsewhere(bench: Bench) -> None:
    async with bench.http.get("/openapi.json") as answer:
        assert await answer.json() == DOCUMENT
    async with bench.http.get("/docs") as answer:
        page = await answer.text()
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    for route in ROUTES:
        assert f"{route.method} {route.path}" in page
    assert "http://" not in page
    assert "https://" not in page
    assert "<script" not in page


@pytest.mark.parametrize("route", [route for route in ROUTES if route.example], ids=lambda route: route.name)
async def test_every_example_is_taken_as_it_is(bench: Bench, route: Route) -> None:
    path, query = route.path, dict(route.example)
    if route.body is not None:
        sent = bench.http.request(route.method, path, json=dict(route.example))
    else:
        for name in [name for name in query if f"{{{name}}}" in path]:
            path = path.replace(f"{{{name}}}", str(query.pop(name)))
        sent = bench.http.request(route.method, path, params=query)
    async with sent as answer:
        assert answer.status in {200, 202, 404}
        # 404 says that it was understood: the example's run does not exist here.
        assert answer.status != 404 or "{" in route.path


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


odd_text = st.one_of(
    st.text(max_size=40),
    st.sampled_from(
        [
            "",
            " ",
            "\0",
            "a\nb",
            "ada",
            "main",
            "true",
            "-1",
            "1e9",
            "null",
            "2025-03-01T09:30:00Z",
            "x" * 300,
            "../..",
            "é" * 70,
        ]
    ),
)
odd_value = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), odd_text),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(odd_text, inner, max_size=3)),
    max_leaves=8,
)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, dict[str, str], bytes | None, dict[str, Any]]:
    """Any request that could be meant for one of the operations: its own names, with odd values, some left out, some unknown."""
    path, method, operation = draw(st.sampled_from([one for one in operations() if one[2]["operationId"] != "events"]))
    query: dict[str, str] = {}
    for parameter in operation["parameters"]:
        if parameter["in"] == "path":
            value = draw(st.one_of(odd_text, st.uuids().map(str)))
            path = path.replace(f"{{{parameter['name']}}}", quote(value or "x", safe="", errors="replace"))
        elif draw(st.booleans()):
            choices = parameter["schema"].get("enum", [])
            query[parameter["name"]] = draw(st.one_of(odd_text, st.sampled_from(choices)) if choices else odd_text)
    query |= draw(st.dictionaries(odd_text, odd_text, max_size=1))
    if "deadline_ms" in query or "wait" in query:
        query["deadline_ms"] = draw(st.sampled_from(["1", "0", "x"]))
    raw = None
    if method == "POST":
        name = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].rsplit("/", 1)[1]
        fields = DOCUMENT["components"]["schemas"][name]["properties"]
        sent = dict(operation["requestBody"]["content"]["application/json"]["example"])
        sent |= draw(st.dictionaries(st.sampled_from([*fields, "zzz"]), odd_value, max_size=3))
        raw = draw(st.one_of(st.just(json.dumps(sent).encode()), st.binary(max_size=30)))
    return path, method, query, raw, operation


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(requests())
def test_whatever_is_sent_is_answered_as_the_document_says(
    loop_bench: Any, request_: tuple[str, str, dict[str, str], bytes | None, dict[str, Any]]
) -> None:
    path, method, query, raw, operation = request_
    loop_bench(check, path, method, query, raw, operation)


async def check(
    http: aiohttp.ClientSession,
    path: str,
    method: str,
    query: dict[str, str],
    raw: bytes | None,
    operation: dict[str, Any],
) -> None:
    # Half a surrogate pair cannot be sent in a query at all.
    url = URL.build(path=path, encoded=True).with_query(
        {name.encode("utf-8", "replace").decode(): v.encode("utf-8", "replace").decode() for name, v in query.items()}
    )
    headers = {} if raw is None else {"Content-Type": "application/json"}
    async with http.request(method, url, data=raw, headers=headers) as answer:
        body = await answer.read()
    expected = operation["responses"].get(str(answer.status))
    assert expected is not None, (answer.status, body)
    assert answer.status != 500, body
    assert answer.content_type in expected["content"]
    schema = expected["content"][answer.content_type]["schema"]
    if answer.content_type == "application/json":
        jsonschema.Draft202012Validator(schema | {"components": DOCUMENT["components"]}).validate(json.loads(body))


@pytest.fixture
def loop_bench() -> Iterator[Any]:
    """Runs a coroutine against one server in a loop of its own: hypothesis calls plain functions."""
    with asyncio.Runner() as runner:
        stack = running()
        bench = runner.run(stack.__aenter__())

        def call(function: Any, *args: Any) -> None:
            runner.run(function(bench.http, *args))

        yield call
        runner.run(stack.__aexit__(None, None, None))
