"""Reading texts with OpenAI's chat completions, or with any server that speaks them (`base_url`).

Chat completions rather than the newer responses API: it is the one that other servers (vLLM, llama.cpp, Ollama, gateways) have too.
"""

from __future__ import annotations

from datetime import timedelta

from openai import AsyncOpenAI, Omit, omit
from openai.types.chat import ChatCompletion
from pydantic import SecretStr

from agents.models.answer import answer_schema, read_answer
from agents.models.base import Extraction, Passage, Usage
from agents.models.prompt import PROMPT_VERSION, instructions, request_text
from agents.models.vendor_calls import VendorCalls, http_timeout, quiet_sdk_logs
from topics.errors import Permanent, Retryable

DEFAULT_MODEL = "gpt-5.4-mini"
"""The vendor's small model with strict structured output."""

DEFAULT_BASE_URL = "https://api.openai.com/v1"

MAX_ANSWER_TOKENS = 8_192

NO_KEY = "none"
"""Sent to own servers that want no key: the SDK insists on some value."""


class OpenAIModel:
    """A LanguageModel. One request a passage; nothing is read from the environment."""

    def __init__(
        self,
        api_key: SecretStr | None,
        *,
        model: str = "",
        base_url: str = "",
        timeout: timedelta = timedelta(seconds=60),
        concurrency: int = 16,
    ) -> None:
        self._model = model or DEFAULT_MODEL
        self._model_id = f"openai/{self._model}#{PROMPT_VERSION}"
        self._calls = VendorCalls(
            "OpenAI" if not base_url else "the model server", service="model", deadline=timeout, concurrency=concurrency
        )
        self._client = open_client(api_key, base_url, timeout)
        # Older servers know only `max_tokens`; OpenAI's newer models accept only its successor.
        self._max_completion_tokens: int | Omit = omit if base_url else MAX_ANSWER_TOKENS
        self._max_tokens: int | Omit = MAX_ANSWER_TOKENS if base_url else omit

    @property
    def model_id(self) -> str:
        return self._model_id

    async def extract(self, passage: Passage) -> Extraction:
        return await self._calls.run(lambda: self._extract(passage))

    async def _extract(self, passage: Passage) -> Extraction:
        completion = await self._client.chat.completions.create(
            model=self._model,
            messages=[
                {"role": "system", "content": instructions()},
                {"role": "user", "content": request_text(passage)},
            ],
            response_format={
                "type": "json_schema",
                "json_schema": {"name": "memory", "schema": answer_schema(), "strict": True},
            },
            max_completion_tokens=self._max_completion_tokens,
            max_tokens=self._max_tokens,
        )
        if not isinstance(completion, ChatCompletion) or not completion.choices:
            raise Retryable("the model server sent a reply without an answer; the call is repeated")
        choice = completion.choices[0]
        if choice.message.refusal or choice.finish_reason == "content_filter":
            raise Permanent("the model refused to read this text; it stays stored and searchable, without facts")
        if choice.finish_reason == "length":
            raise Permanent("the model's answer was cut off (length); send the text in smaller pieces")
        return read_answer(
            choice.message.content or "",
            model_id=self._model_id,
            usage=_usage(completion),
            author=passage.author,
            author_type=passage.author_type,
        )

    async def close(self) -> None:
        await self._client.close()


def open_client(api_key: SecretStr | None, base_url: str, timeout: timedelta) -> AsyncOpenAI:
    """The SDK's client with its retries off and no look at the environment for key or address."""
    quiet_sdk_logs("openai")
    return AsyncOpenAI(
        api_key=api_key.get_secret_value() if api_key else NO_KEY,
        base_url=base_url or DEFAULT_BASE_URL,
        timeout=http_timeout(timeout),
        max_retries=0,
    )


def _usage(completion: ChatCompletion) -> Usage:
    if completion.usage is None:
        return Usage()
    return Usage(input_tokens=completion.usage.prompt_tokens, output_tokens=completion.usage.completion_tokens)
