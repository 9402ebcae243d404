"""The demonstration: from nothing to answers, in a stack of its own that is gone afterwards.

It starts the real Kafka, Neo4j and Weaviate, a server and a worker, imports a small sample of mail and chat (strandline/demo_data), and asks three
questions whose answers the sample's README tells. It reads with the local models, so it needs no key and costs nothing.
"""

from __future__ import annotations

import asyncio
import shlex
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from connectors.base import ReadOptions
from connectors.registry import source_named
from strandline import stack
from strandline.api.models import FoundFact, SearchPage
from strandline.cli import output
from strandline.cli.answers import answer_lines
from strandline.cli.imports import progress
from strandline.cli.stack import shown_progress
from strandline.client import Client
from strandline.importing import Import, run_import
from strandline.log_wiring import open_log
from strandline.requests import SearchBody
from strandline.settings import Settings, with_changes
from strandline.stack import default_folder, ports
from strandline.stack.files import locked
from strandline.supervisor import Plan, System, running
from topics.errors import StrandlineError

DATA = Path(__file__).with_name("demo_data")
SOURCES = (("mbox", DATA / "mail.mbox"), ("slack_export", DATA / "slack-export"))
USER = "demo"
HITS = 3

NOTICE = """\
These answers were found by the local models, without any key. They know English only. They find names well, but state relations only in
plain sentences, and miss most of those in long mails, chats and notes. With STRANDLINE_ANTHROPIC_API_KEY or STRANDLINE_OPENAI_API_KEY
set, a large model reads the texts instead."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question and what the sample says: one of the first facts must be `subject`, `object` and true since `since`."""

    text: str
    subject: str
    object: str
    since: datetime
    as_of: datetime | None = None

    def answered_by(self, fact: FoundFact) -> bool:
        return (fact.subject, fact.object, fact.valid_at) == (self.subject, self.object, self.since) and bool(
            fact.source_ids
        )


QUESTIONS = (
    Question("Where does Ada Marsh work?", "Ada Marsh", "Beta Labs", datetime(2026, 6, 1, tzinfo=UTC)),
    Question(
        "Where does Ada Marsh work?",
        "Ada Marsh",
        "Acme",
        datetime(2026, 1, 12, tzinfo=UTC),
        as_of=datetime(2026, 3, 15, tzinfo=UTC),
    ),
    Question(
        "When is the kickoff meeting scheduled?",
        "kickoff meeting",
        "2026-03-12",
        datetime(2026, 2, 20, 15, 45, tzinfo=UTC),
    ),
)


def run(*, keep: bool = False) -> int:
    """Shows everything; gives the exit code: 1 if an answer is not what the sample says. With `keep` it stays up until Ctrl-C."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does, with everything stopped
    folder = default_folder().with_name("demo")
    with ExitStack() as opened:
        opened.enter_context(
            locked(folder.with_name("demo.lock"), lambda: output.tell("another demonstration runs; waiting"))
        )
        output.show(
            "1. Kafka, Neo4j and Weaviate, apart from your own. The first time on a machine Weaviate is built: some minutes."
        )
        addresses = opened.enter_context(_services(folder, keep))
        environment = {
            **addresses.as_environment(),
            "STRANDLINE_STACK_FOLDER": str(folder),
            "STRANDLINE_USER": USER,
            "STRANDLINE_DATASET": "main",
            "STRANDLINE_MODEL__PROVIDER": "local",
            "STRANDLINE_EMBEDDER__PROVIDER": "local",
            "STRANDLINE_API__PORT": str(ports.choose(7878, prefer_standard=True, taken=())),
        }
        log = opened.enter_context((folder / "strandline.log").open("w", encoding="utf-8"))
        return output.run(_show(folder, environment, log, keep))


async def _show(folder: Path, environment: Mapping[str, str], log: IO[str], keep: bool) -> int:
    settings = with_changes(environment)

    def say(name: str, line: str) -> None:
        log.write(f"{name or 'strandline':<10}| {line}\n")
        log.flush()
        if line == "ready":
            output.show(f"   {name} is ready")

    output.show("2. A server and a worker.")
    async with running(Plan(settings, environment=environment), say) as system:
        output.show("3. Twelve mails and a Slack export of 26 messages are imported.")
        for name, path in SOURCES:
            await _import(name, path, folder, settings)
        output.show("4. Three questions.")
        wrong = [question for question in QUESTIONS if not await _ask(question, system, settings)]
        output.show()
        output.show(NOTICE)
        _show_way_on(system, folder, keep)
        if keep and not wrong:
            await _interrupted()
    for question in wrong:
        output.tell(
            f"Error: no answer says {question.subject}: {question.object} ({question.text}); the log: {folder / 'strandline.log'}"
        )
    return 1 if wrong else 0


async def _import(name: str, path: Path, folder: Path, settings: Settings) -> None:
    job = Import(path, source_named(name), ReadOptions(USER, settings.dataset), folder / "imports")
    async with open_log(settings) as log:
        await log.start()
        with progress() as observer:
            tally = await run_import(job, log, observer)
    skipped = f", {tally.skipped.total()} skipped ({', '.join(sorted(tally.skipped))})" if tally.skipped else ""
    output.show(f"   {path.name}: {tally.complete} remembered{skipped}")
    if tally.failed:
        raise StrandlineError(f"{tally.failed} of the sample's texts failed; the log: {folder / 'strandline.log'}")


async def _ask(question: Question, system: System, settings: Settings) -> bool:
    when = "" if question.as_of is None else f" --as-of {question.as_of:%Y-%m-%d}"
    output.show()
    output.show(f"   $ strandline search {shlex.quote(question.text)}{when}")
    async with Client(system.url) as client:
        answer = await client.search(
            SearchBody(user_id=USER, dataset=settings.dataset, query=question.text, as_of=question.as_of, limit=HITS)
        )
    for line in answer_lines(answer, question.text):
        output.show(f"   {line}")
    return any(question.answered_by(fact) for fact in _facts(answer))


def _facts(answer: SearchPage) -> Iterator[FoundFact]:
    for hit in answer.hits:
        yield from hit.facts


def _show_way_on(system: System, folder: Path, keep: bool) -> None:
    output.show()
    if keep:
        output.show(f"It is still up at {system.url}; Ctrl-C ends it. In another terminal:")
        output.show(f'  strandline search "To whom does Ada Marsh report?" --user {USER} --url {system.url}')
        output.show(
            f"Its services and data are in {folder}: start them again with STRANDLINE_STACK_FOLDER={folder} strandline up"
        )
    else:
        output.show("Your own memory, kept in your account:")
        output.show("  strandline up                              services, server and worker")
        output.show("  strandline import mail.mbox                mail, or a Slack export")
        output.show('  strandline search "…" --as-of 2026-03-15   what was true then')


async def _interrupted() -> None:
    stopped = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    await stopped.wait()


@contextmanager
def _services(folder: Path, keep: bool) -> Iterator[stack.Addresses]:
    """A new stack in `folder`; one that an earlier demonstration has left there is deleted."""
    try:
        with shown_progress() as shown:
            stack.open_stack(folder, progress=shown).delete()
            addresses = stack.up(folder, progress=shown)
        yield addresses
    finally:
        with shown_progress() as shown:
            made = stack.open_stack(folder, progress=shown)
            if keep:
                made.stop()
            else:
                made.delete()
