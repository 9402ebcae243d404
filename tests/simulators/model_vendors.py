"""A local stand-in for Anthropic and OpenAI: their routes on a loopback port, their replies in their wire formats, and faults on demand.

The real SDKs drive it. It refuses what the vendors refuse (no key, a schema that strict mode does not take), checks each of its own good replies with
the SDKs' models, keeps what it was asked, and answers from the passage by the scripted models' line grammar.

    async with ModelVendors() as vendors:
        vendors.faults.append(rate_limited("7"))
        AnthropicModel(SecretStr(KEY), base_url=vendors.anthropic_url)
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np
from aiohttp import web
from anthropic.types import Message
from openai.types import CreateEmbeddingResponse
from openai.types.chat import ChatCompletion

from agents.models.base import Passage
from agents.models.scripted import hashed, read_script

KEY = "sk-stand-in-0123456789abcdef"

Fault = Callable[["ModelVendors", web.Request], Awaitable[web.StreamResponse]]
"""Answers one request in place of the good reply."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def prompt_chars(self) -> int:
        """Instructions, passage and schema together."""
        return len(json.dumps(self.body, ensure_ascii=False))


@dataclass(slots=True)
class ModelVendors:
    """The running stand-in. `faults` are used up one a request, first in first out."""

    faults: deque[Fault] = field(default_factory=deque)
    requests: list[Seen] = field(default_factory=list)
    stalled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once a request waits in `stall`."""
    _end: asyncio.Event = field(default_factory=asyncio.Event)
    _runner: web.AppRunner | None = None
    _port: int = 0

    @property
    def anthropic_url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def openai_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=16 * 1024 * 1024)
        app.router.add_post("/v1/messages", self._serve(_messages, "anthropic"))
        app.router.add_post("/v1/chat/completions", self._serve(_chat, "openai"))
        app.router.add_post("/v1/embeddings", self._serve(_embeddings, "openai"))
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._end.set()
        if self._runner is not None:
            await self._runner.cleanup()

    def _serve(
        self, reply: Callable[[dict[str, Any]], web.Response], vendor: str
    ) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            body = await request.json()
            self.requests.append(Seen(request.path, dict(request.headers), body))
            if self.faults:
                return await self.faults.popleft()(self, request)
            if not _has_key(request, vendor):
                return error_reply(
                    401, vendor, "authentication_error", "invalid_api_key", f"Incorrect API key provided: {KEY[:8]}***"
                )
            return reply(body)

        return handle

    async def wait_for_end(self) -> None:
        self.stalled.set()
        await self._end.wait()


# Faults


def rate_limited(retry_after: str = "", *, millis: str = "") -> Fault:
    headers = {key: value for key, value in (("Retry-After", retry_after), ("retry-after-ms", millis)) if value}
    return _status(429, "rate_limit_error", "rate_limit_exceeded", "slow down", headers)


def overloaded() -> Fault:
    return _status(529, "overloaded_error", "overloaded", "Overloaded")


def server_error(status: int = 500) -> Fault:
    return _status(status, "api_error", "server_error", "Internal server error")


def unauthorized(status: int = 401) -> Fault:
    return _status(status, "authentication_error", "invalid_api_key", f"Incorrect API key provided: {KEY}")


def insufficient_quota() -> Fault:
    """OpenAI's way to say that the account is empty: a 429 like any other but for its code."""
    return _status(429, "insufficient_quota", "insufficient_quota", "You exceeded your current quota")


def low_credit() -> Fault:
    """Anthropic's: a 400 like any other but for its message."""
    return _status(400, "invalid_request_error", "", "Your credit balance is too low to access the API.")


def bad_request(message: str = "messages: text too long") -> Fault:
    return _status(400, "invalid_request_error", "", message)


def not_found() -> Fault:
    return _status(404, "not_found_error", "model_not_found", "model: no-such-model")


def html_page(status: int = 200) -> Fault:
    async def answer(_: ModelVendors, __: web.Request) -> web.StreamResponse:
        return web.Response(status=status, text="<html><body>Bad gateway</body></html>", content_type="text/html")

    return answer


async def drop(_: ModelVendors, request: web.Request) -> web.StreamResponse:
    """Closes the connection without a reply."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def stall(vendors: ModelVendors, _: web.Request) -> web.StreamResponse:
    """Never answers."""
    await vendors.wait_for_end()
    return web.Response()


async def drip(vendors: ModelVendors, request: web.Request) -> web.StreamResponse:
    """Sends the head and then nothing but a blank now and then: no read ever times out."""
    reply = web.StreamResponse(headers={"Content-Type": "application/json"})
    await reply.prepare(request)
    vendors.stalled.set()
    while not vendors._end.is_set():
        try:
            await reply.write(b" ")
            async with asyncio.timeout(0.02):
                await vendors._end.wait()
        except TimeoutError:
            continue
        except ConnectionError:
            break
    return reply


async def cut(_: ModelVendors, request: web.Request) -> web.StreamResponse:
    """Promises 10,000 bytes, sends a few and closes."""
    reply = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "10000"})
    await reply.prepare(request)
    await reply.write(b'{"id": "msg_1", "type": "message", "con')
    assert request.transport is not None
    request.transport.abort()
    return reply


async def broken_json(_: ModelVendors, __: web.Request) -> web.StreamResponse:
    """200, called JSON, and is none."""
    return web.Response(body=b'{"id": "msg_1", "type": ', content_type="application/json")


async def empty_object(_: ModelVendors, __: web.Request) -> web.StreamResponse:
    """200, JSON, and nothing of what the vendor promises."""
    return web.json_response({})


async def truncation(_: ModelVendors, request: web.Request) -> web.StreamResponse:
    return _answer(request, '{"entities": [{"na', stop="max_tokens", finish="length")


async def refusal(_: ModelVendors, request: web.Request) -> web.StreamResponse:
    return _answer(request, "", stop="refusal", finish="stop", refused="I cannot help with that.")


async def content_filter(_: ModelVendors, request: web.Request) -> web.StreamResponse:
    return _answer(request, "", stop="refusal", finish="content_filter")


async def invalid_json(_: ModelVendors, request: web.Request) -> web.StreamResponse:
    """A good reply whose text is not the JSON that was asked for."""
    return _answer(request, "Sure! Here are the facts: Ada works at Acme.")


def answers(text: str) -> Fault:
    """The model's text as given, in a good reply."""

    async def answer(_: ModelVendors, request: web.Request) -> web.StreamResponse:
        return _answer(request, text)

    return answer


async def short_vectors(_: ModelVendors, request: web.Request) -> web.StreamResponse:
    body = await request.json()
    return web.json_response(_vector_reply([[1.0, 0.0]] * len(body["input"]), body))


async def missing_vector(_: ModelVendors, request: web.Request) -> web.StreamResponse:
    body = await request.json()
    return web.json_response(_vector_reply([[1.0] * 1536] * (len(body["input"]) - 1), body))


def _status(status: int, type: str, code: str, message: str, headers: Mapping[str, str] | None = None) -> Fault:
    async def answer(_: ModelVendors, request: web.Request) -> web.StreamResponse:
        vendor = "anthropic" if request.path.endswith("/messages") else "openai"
        return error_reply(status, vendor, type, code, message, headers)

    return answer


def error_reply(
    status: int, vendor: str, type: str, code: str, message: str, headers: Mapping[str, str] | None = None
) -> web.Response:
    inner: dict[str, Any] = {"type": type, "message": message}
    if vendor == "openai":
        return web.json_response(
            {"error": inner | {"code": code or None, "param": None}},
            status=status,
            headers={"x-request-id": "req_1", **(headers or {})},
        )
    return web.json_response(
        {"type": "error", "error": inner, "request_id": "req_1"},
        status=status,
        headers={"request-id": "req_1", **(headers or {})},
    )


# Good replies


def _has_key(request: web.Request, vendor: str) -> bool:
    if vendor == "anthropic":
        # The API takes both; which one the SDK sends has changed between its releases.
        sent = request.headers.get("x-api-key") or request.headers.get("Authorization", "").removeprefix("Bearer ")
        return sent == KEY and "anthropic-version" in request.headers
    return request.headers.get("Authorization") == f"Bearer {KEY}"


def _messages(body: dict[str, Any]) -> web.Response:
    assert body["max_tokens"] > 0
    assert body["messages"][0]["role"] == "user"
    fault = _schema_fault(body["output_config"]["format"]["schema"])
    if fault or body["output_config"]["format"]["type"] != "json_schema":
        return error_reply(400, "anthropic", "invalid_request_error", "", fault)
    return web.json_response(_message(_read(body["messages"][0]["content"]), body["model"]))


def _chat(body: dict[str, Any]) -> web.Response:
    wanted = body["response_format"]["json_schema"]
    fault = _schema_fault(wanted["schema"]) if wanted["strict"] else "strict must be true"
    if fault:
        return error_reply(400, "openai", "invalid_request_error", "invalid_json_schema", fault)
    return web.json_response(_completion(_read(body["messages"][-1]["content"]), body["model"]))


def _embeddings(body: dict[str, Any]) -> web.Response:
    texts: list[str] = body["input"]
    if not texts or len(texts) > 2048 or any(text == "" for text in texts):
        return error_reply(400, "openai", "invalid_request_error", "", "input cannot be an empty string")
    size = body.get("dimensions") or {"text-embedding-3-large": 3072}.get(body["model"], 1536)
    rows = hashed(texts)
    wide = np.zeros((len(texts), size), np.float32)
    width = min(size, rows.shape[1])
    # Not of unit length, as some servers answer: the client has to see to that.
    wide[:, :width] = rows[:, :width] * 3
    return web.json_response(_vector_reply(wide.tolist(), body))


def _vector_reply(vectors: Sequence[Sequence[float]], body: dict[str, Any]) -> dict[str, Any]:
    def coded(vector: Sequence[float]) -> object:
        if body.get("encoding_format") == "base64":
            return base64.b64encode(np.array(vector, "<f4").tobytes()).decode()
        return list(vector)

    reply = {
        "object": "list",
        # Last first: a client has to go by the index.
        "data": [
            {"object": "embedding", "index": i, "embedding": coded(vectors[i])} for i in reversed(range(len(vectors)))
        ],
        "model": body["model"],
        "usage": {"prompt_tokens": 7, "total_tokens": 7},
    }
    checkable = reply | {
        "data": [{"object": "embedding", "index": i, "embedding": list(row)} for i, row in enumerate(vectors)]
    }
    CreateEmbeddingResponse.model_validate(checkable)
    return reply


def _answer(
    request: web.Request, text: str, *, stop: str = "end_turn", finish: str = "stop", refused: str | None = None
) -> web.Response:
    if request.path.endswith("/messages"):
        return web.json_response(_message(text, "stand-in", stop=stop))
    return web.json_response(_completion(text, "stand-in", finish=finish, refused=refused))


def _message(text: str, model: str, *, stop: str = "end_turn") -> dict[str, Any]:
    reply = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": text, "citations": None}] if text else [],
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 20,
            "output_tokens": 30,
            "cache_read_input_tokens": 400,
            "cache_creation_input_tokens": 0,
        },
    }
    Message.model_validate(reply)
    return reply


def _completion(text: str, model: str, *, finish: str = "stop", refused: str | None = None) -> dict[str, Any]:
    reply = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": model,
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "logprobs": None,
                "message": {"role": "assistant", "content": None if refused else text, "refusal": refused},
            }
        ],
        "usage": {"prompt_tokens": 420, "completion_tokens": 30, "total_tokens": 450},
    }
    ChatCompletion.model_validate(reply)
    return reply


_DATA = re.compile(r"^(=====\s\w{16})\n(?P<data>.*)\n\1$", re.DOTALL | re.MULTILINE)


def _read(prompt: str) -> str:
    """The answer to a prompt: its passage read by the line grammar, as a model would write it."""
    found = _DATA.search(prompt)
    assert found is not None
    head, _, text = found["data"].partition("\n\n")
    author = head.partition("author: ")[2].partition(" (")[0]
    passage = Passage(text, datetime(2025, 1, 1, tzinfo=UTC), author="" if author == "unknown" else author)
    extraction = read_script(passage)
    return json.dumps(
        {
            "entities": [{"name": e.name, "type": e.type, "description": e.description} for e in extraction.entities],
            "facts": [
                {
                    "subject": s.subject,
                    "relation": s.relation,
                    "object": s.object,
                    "description": s.description,
                    "valid_at": s.valid_at.isoformat() if s.valid_at else None,
                    "invalid_at": s.invalid_at.isoformat() if s.invalid_at else None,
                    "ends": s.ends,
                }
                for s in extraction.statements
            ],
        }
    )


def _schema_fault(schema: Mapping[str, Any]) -> str:
    """What strict mode has against a schema: an open object, a property that may be left out, a keyword it does not know; "" if nothing."""
    unknown = set(schema) - {
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "description",
        "enum",
    }
    if unknown:
        return f"unsupported keywords: {sorted(unknown)}"
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            return "additionalProperties must be false"
        if set(schema.get("required", ())) != set(schema["properties"]):
            return "all properties must be required"
    parts = [
        *schema.get("properties", {}).values(),
        *([schema["items"]] if "items" in schema else []),
        *schema.get("anyOf", ()),
    ]
    return next((fault for fault in map(_schema_fault, parts) if fault), "")
