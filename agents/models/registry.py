"""Which models there are, and which ones a set of settings means. The SDKs and local models are imported only when chosen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

from pydantic import SecretStr

from agents.models.base import Embedder, LanguageModel
from agents.models.local import LOCAL_NOTICE
from topics.errors import Refused

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What a person sets. Empty names mean the provider's default."""

    provider: str = AUTO
    """A name in MODELS, or auto."""
    model: str = ""
    base_url: str = ""
    """Another address for the language model; with provider auto and no Anthropic key it means an OpenAI-compatible server."""
    anthropic_api_key: SecretStr | None = None
    openai_api_key: SecretStr | None = None
    timeout: timedelta = timedelta(seconds=60)
    concurrency: int = 16
    """Calls to a vendor at once, for texts and for vectors each."""
    embedder: str = AUTO
    """A name in EMBEDDERS, or auto."""
    embedder_model: str = ""
    embedder_base_url: str = ""
    dimension: int | None = None
    """Of the vectors; None = the model's own. Must stay the same as long as an index lives."""
    latency: timedelta = timedelta(0)
    """Of the scripted model: for benchmarks."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Which provider and embedder settings come to, and what the user must hear about it ("" for nothing)."""

    provider: str
    embedder: str
    notice: str = ""


def choose(settings: ModelSettings) -> Choice:
    """Resolves auto. Raises Refused for an unknown name or a provider whose key is missing."""
    provider = settings.provider if settings.provider != AUTO else _auto_model(settings)
    embedder = settings.embedder if settings.embedder != AUTO else _auto_embedder(settings, provider)
    _check(provider, embedder, settings)
    return Choice(provider, embedder, _notice(settings, provider, embedder))


def open_models(settings: ModelSettings) -> tuple[LanguageModel, Embedder]:
    """The chosen pair, not yet connected to anything; close both. Raises Refused as `choose` does."""
    choice = choose(settings)
    return MODELS[choice.provider](settings), EMBEDDERS[choice.embedder](settings)


def _auto_model(settings: ModelSettings) -> str:
    if _has(settings.anthropic_api_key):
        return "anthropic"
    return "openai" if _has(settings.openai_api_key) or settings.base_url else "local"


def _auto_embedder(settings: ModelSettings, provider: str) -> str:
    if provider == "scripted":
        return "scripted"
    if settings.embedder_base_url:
        return "openai"
    # A key for somebody's own chat server says nothing about embeddings there.
    own_server = provider == "openai" and settings.base_url
    return "openai" if _has(settings.openai_api_key) and not own_server else "local"


def _check(provider: str, embedder: str, settings: ModelSettings) -> None:
    if provider not in MODELS:
        raise Refused(f"unknown model provider {provider!r}; there are: {', '.join((AUTO, *MODELS))}", field="provider")
    if embedder not in EMBEDDERS:
        raise Refused(f"unknown embedder {embedder!r}; there are: {', '.join((AUTO, *EMBEDDERS))}", field="embedder")
    if provider == "anthropic" and not _has(settings.anthropic_api_key):
        raise Refused("the provider anthropic needs an Anthropic API key", field="anthropic_api_key")
    if provider == "openai" and not _has(settings.openai_api_key) and not settings.base_url:
        raise Refused("the provider openai needs an OpenAI API key, or a base_url", field="openai_api_key")
    if embedder == "openai" and not _has(settings.openai_api_key) and not settings.embedder_base_url:
        raise Refused("the embedder openai needs an OpenAI API key, or an embedder_base_url", field="openai_api_key")


def _notice(settings: ModelSettings, provider: str, embedder: str) -> str:
    if provider == "scripted":
        return "Scripted models: for tests and benchmarks only. Texts are read by a line grammar, not understood."
    if provider == "local":
        return LOCAL_NOTICE if settings.provider == "local" else f"No API key is set. {LOCAL_NOTICE}"
    if embedder == "local" and settings.embedder == AUTO:
        return "Vectors come from the local model (English only): no OpenAI key is set."
    return ""


def _has(key: SecretStr | None) -> bool:
    return key is not None and bool(key.get_secret_value().strip())


def _anthropic(settings: ModelSettings) -> LanguageModel:
    from agents.models.anthropic_model import AnthropicModel

    return AnthropicModel(
        settings.anthropic_api_key or SecretStr(""),
        model=settings.model,
        base_url=settings.base_url,
        timeout=settings.timeout,
        concurrency=settings.concurrency,
    )


def _openai(settings: ModelSettings) -> LanguageModel:
    from agents.models.openai_model import OpenAIModel

    return OpenAIModel(
        settings.openai_api_key,
        model=settings.model,
        base_url=settings.base_url,
        timeout=settings.timeout,
        concurrency=settings.concurrency,
    )


def _local(_: ModelSettings) -> LanguageModel:
    from agents.models.local.rules_model import RulesModel

    return RulesModel()


def _scripted(settings: ModelSettings) -> LanguageModel:
    from agents.models.scripted import ScriptedModel

    return ScriptedModel(latency=settings.latency)


def _openai_embedder(settings: ModelSettings) -> Embedder:
    from agents.models.openai_embedder import OpenAIEmbedder

    return OpenAIEmbedder(
        settings.openai_api_key,
        model=settings.embedder_model,
        dimension=settings.dimension,
        base_url=settings.embedder_base_url,
        timeout=settings.timeout,
        concurrency=settings.concurrency,
    )


def _minilm(_: ModelSettings) -> Embedder:
    from agents.models.local.minilm import MiniLMEmbedder

    return MiniLMEmbedder()


def _hashed(_: ModelSettings) -> Embedder:
    from agents.models.scripted import HashedEmbedder

    return HashedEmbedder()


MODELS: Mapping[str, Callable[[ModelSettings], LanguageModel]] = MappingProxyType(
    {"anthropic": _anthropic, "openai": _openai, "local": _local, "scripted": _scripted}
)

EMBEDDERS: Mapping[str, Callable[[ModelSettings], Embedder]] = MappingProxyType(
    {"openai": _openai_embedder, "local": _minilm, "scripted": _hashed}
)
