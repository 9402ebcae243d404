"""Reading texts with Anthropic's Messages API (structured output: `output_config.format`)."""

from __future__ import annotations

from datetime import timedelta

from anthropic import AsyncAnthropic
from anthropic.types import Message
from pydantic import SecretStr

from agents.models.answer import answer_schema, read_answer
from agents.models.base import Extraction, Passage, Usage
from agents.models.prompt import PROMPT_VERSION, instructions, request_text
from agents.models.vendor_calls import VendorCalls, http_timeout, quiet_sdk_logs
from topics.errors import Permanent, Retryable

DEFAULT_MODEL = "claude-haiku-5-5"
"""The vendor's small model: extraction reads every text, so price and speed count. Structured output needs a 4.5 model or newer."""

DEFAULT_BASE_URL = "https://api.anthropic.com"

MAX_ANSWER_TOKENS = 8_192
"""A passage of 1,024 tokens yields 1,000–3,000 tokens of facts; the rest is room for thinking."""


class AnthropicModel:
    """A LanguageModel. One request a passage; nothing is read from the environment."""

    def __init__(
        self,
        api_key: SecretStr,
        *,
        model: str = "",
        base_url: str = "",
        timeout: timedelta = timedelta(seconds=60),
        concurrency: int = 16,
    ) -> None:
        self._model = model or DEFAULT_MODEL
        self._model_id = f"anthropic/{self._model}#{PROMPT_VERSION}"
        self._calls = VendorCalls("Anthropic", service="model", deadline=timeout, concurrency=concurrency)
        self._client = AsyncAnthropic(
            api_key=api_key.get_secret_value(),
            base_url=base_url or DEFAULT_BASE_URL,
            timeout=http_timeout(timeout),
            max_retries=0,
        )
        quiet_sdk_logs("anthropic")

    @property
    def model_id(self) -> str:
        return self._model_id

    async def extract(self, passage: Passage) -> Extraction:
        return await self._calls.run(lambda: self._extract(passage))

    async def _extract(self, passage: Passage) -> Extraction:
        # Not `messages.parse`: it fails on the cut JSON of a truncated answer before anyone can see why it was cut.
        message = await self._client.messages.create(
            model=self._model,
            max_tokens=MAX_ANSWER_TOKENS,
            system=[{"type": "text", "text": instructions(), "cache_control": {"type": "ephemeral"}}],
            messages=[{"role": "user", "content": request_text(passage)}],
            output_config={"format": {"type": "json_schema", "schema": answer_schema()}},
        )
        if not isinstance(message, Message):
            raise Retryable("Anthropic sent a reply that is not JSON; the call is repeated")
        if message.stop_reason == "refusal":
            raise Permanent(
                "Anthropic's model refused to read this text; it stays stored and searchable, without facts"
            )
        if message.stop_reason in ("max_tokens", "model_context_window_exceeded"):
            raise Permanent(f"Anthropic's answer was cut off ({message.stop_reason}); send the text in smaller pieces")
        return read_answer(
            "".join(block.text for block in message.content if block.type == "text"),
            model_id=self._model_id,
            usage=_usage(message),
            author=passage.author,
            author_type=passage.author_type,
        )

    async def close(self) -> None:
        await self._client.close()


def _usage(message: Message) -> Usage:
    used = message.usage
    read = used.input_tokens + (used.cache_read_input_tokens or 0) + (used.cache_creation_input_tokens or 0)
    return Usage(input_tokens=read, output_tokens=used.output_tokens)
