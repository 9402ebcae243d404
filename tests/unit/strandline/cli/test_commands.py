"""remember, search, runs, run and tail against a real server on doubles."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import pytest

from strandline.api.models import FoundFact, Hit, SearchPage, SourceText
from strandline.cli import root
from strandline.cli.answers import answer_lines, quote
from strandline.cli.output import counted, day, duration, one_line, printable, shortened
from tests.doubles.server import Bench, running
from topics.codec import decode
from topics.keys import derived_id
from topics.records import RememberRequest

AT = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with running() as made:
        yield made


Run = Callable[..., "asyncio.Future[tuple[int, str, str]]"]


@pytest.fixture
def strandline(bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in a thread, since it has an event loop of its own; gives exit code, output, messages."""
    monkeypatch.setenv("STRANDLINE_USER", "ada")

    async def run(*arguments: str) -> tuple[int, str, str]:
        code = await asyncio.to_thread(root.run, [*arguments, "--url", bench.url])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return lambda *arguments: asyncio.ensure_future(run(*arguments))


async def first_request(bench: Bench) -> RememberRequest:
    """The first request on the log, waited for."""
    async with aclosing(bench.log.follow("remember.requests", dict.fromkeys(range(12), 0))) as requests:
        async for incoming in requests:
            record = decode(incoming)
            assert isinstance(record, RememberRequest)
            return record
    raise AssertionError("the log ended")


async def test_remember_gives_the_receipt_and_the_next_step(strandline: Run, bench: Bench) -> None:
    code, out, err = await strandline("remember", "Ada lives in Berlin.", "--author", "Ada", "--at", "2026-03-01")
    assert code == 0
    run_id = out.split()[2]
    request = await bench.requested(run_id)
    assert (request.text, request.author, request.reference_time) == ("Ada lives in Berlin.", "Ada", AT)
    assert err.startswith("Next: strandline search 'Ada lives in Berlin' ")


@pytest.mark.parametrize(
    ("text", "proposed"),
    [
        ("rm; `rm` $(x) 'it' \"b\"", "search 'rm rm x it' --dataset='my notes' "),
        ("🙂!", "runs "),
    ],
)
async def test_the_proposed_search_is_safe_to_paste(strandline: Run, text: str, proposed: str) -> None:
    _, _, err = await strandline("remember", text, "--dataset", "my notes")
    assert err.startswith(f"Next: strandline {proposed}")


@pytest.mark.parametrize("command", [["tail"], ["search", "x"], ["remember", "x"], ["runs"]])
def test_without_a_server_a_command_says_how_to_start_one_and_nothing_else(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        code = root.run([*command, "--url", url])
    out, err = capsys.readouterr()
    assert (code, out) == (1, "")
    assert f"no server at {url}: start everything with `strandline up`" in err
    assert "Events of" not in err
    assert "ssl:" not in err


def test_one_is_no_plural() -> None:
    assert [counted(number, "fact") for number in (0, 1, 2)] == ["0 facts", "1 fact", "2 facts"]


async def test_json_is_the_receipt_and_nothing_else(strandline: Run) -> None:
    code, out, err = await strandline("remember", "Ada lives in Berlin.", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["durable"] is True


async def test_a_wait_that_ends_in_a_rejection_ends_with_1(strandline: Run, bench: Bench) -> None:
    waiting = strandline("remember", "Ada lives in Berlin.", "--wait", "complete", "--key", "k1")
    request = await first_request(bench)
    await bench.tell(request, "rejected", error="another text has this key")
    code, out, err = await waiting
    assert code == 1
    assert out.startswith("rejected")
    assert "another text has this key" in out
    assert "--wait" in err


async def test_a_refused_text_is_told_with_its_field(strandline: Run) -> None:
    code, out, err = await strandline("remember", "   ")
    assert (code, out) == (1, "")
    assert "text must not be empty or blank" in err


async def test_a_search_without_hits_says_so(strandline: Run) -> None:
    code, out, err = await strandline("search", "Where is Ada?", "--as-of", "2025-06-01")
    assert code == 0
    assert out == "Nothing found that was true at 2025-06-01, as known at 2026-03-02 09:30 UTC.\n"
    assert "strandline runs" in err


async def test_a_dataset_nobody_wrote_to_is_not_found(strandline: Run) -> None:
    code, _, err = await strandline("search", "x", "--dataset", "unknown")
    assert code == 1
    assert "no dataset of that name" in err


async def test_runs_are_tab_separated_in_a_pipe(strandline: Run, bench: Bench) -> None:
    _, receipt, _ = await strandline("remember", "Ada lives in Berlin.", "--json")
    request = await bench.requested(json.loads(receipt)["run_id"])
    await bench.tell(request, "queryable")
    code, out, _ = await strandline("run", str(request.run_id))
    assert code == 0
    assert out.splitlines()[0].startswith("queryable  run ")
    assert "intake\tsucceeded\t" in out


async def test_run_waits_until_it_is_complete(strandline: Run, bench: Bench) -> None:
    _, receipt, _ = await strandline("remember", "Ada lives in Berlin.", "--json")
    request = await bench.requested(json.loads(receipt)["run_id"])
    waiting = strandline("run", str(request.run_id), "--wait", "--json")
    await bench.tell(request, "queryable")
    await bench.tell(request, "complete", "indexer")
    code, out, _ = await waiting
    assert (code, json.loads(out)["status"]) == (0, "complete")


async def test_a_run_that_does_not_end_in_time_ends_with_1(strandline: Run, bench: Bench) -> None:
    _, receipt, _ = await strandline("remember", "Ada lives in Berlin.", "--json")
    run_id = json.loads(receipt)["run_id"]
    await bench.tell(await bench.requested(run_id), "queryable")
    code, out, _ = await strandline("run", run_id, "--wait", "--deadline", "0.2")
    assert code == 1
    assert out.startswith("queryable")


async def test_a_run_of_nobody_is_not_found(strandline: Run) -> None:
    code, _, err = await strandline("run", str(derived_id("nothing")))
    assert code == 1
    assert "Error:" in err


def found_fact(**changes: object) -> FoundFact:
    fields: dict[str, object] = {
        "id": str(derived_id("fact")),
        "subject_id": str(derived_id("entity", "Ada")),
        "subject": "Ada",
        "relation": "lives_in",
        "object_id": str(derived_id("entity", "Berlin")),
        "object": "Berlin",
        "description": "",
        "valid_at": AT,
        "created_at": AT,
        "source_ids": (str(derived_id("text")),),
    }
    return FoundFact.model_validate(fields | changes)


SOURCE = SourceText(
    artifact_id=str(derived_id("text")),
    run_id=str(derived_id("run")),
    seq=1,
    length=79,
    text="Hello all. Since March I live in Berlin, near the river. Ada\x1b[31m greets you!",
    title="News",
    author="Ada <ada@example.org>",
    source_type="mbox",
    valid_at=AT + timedelta(hours=9, minutes=5),
    created_at=AT,
)


def answer(*hits: Hit) -> SearchPage:
    return SearchPage(hits=hits, as_of=AT, known_at=AT)


def test_a_fact_is_shown_with_its_dates_its_source_and_the_words() -> None:
    hit = Hit(
        kind="fact",
        id=str(derived_id("fact")),
        score=1,
        found_by=("fact.words",),
        facts=(found_fact(),),
        sources=(SOURCE,),
    )
    assert list(answer_lines(answer(hit), "Where does Ada live?")) == [
        "1. Ada lives in Berlin  [since 2026-03-01]",
        "   “Since March I live in Berlin, near the river.”",
        '   Ada <ada@example.org>, 2026-03-01 09:05 UTC, "News"',
    ]


@pytest.mark.parametrize("field", ["invalid_at", "stated_invalid_at"])
def test_a_fact_that_ended_says_when(field: str) -> None:
    fact = found_fact(**{field: AT + timedelta(days=30)})
    hit = Hit(kind="fact", id=fact.id, score=1, found_by=("fact.words",), facts=(fact,))
    assert list(answer_lines(answer(hit), "x")) == ["1. Ada lives in Berlin  [since 2026-03-01, until 2026-03-31]"]


def test_a_fact_found_twice_is_shown_once() -> None:
    fact = Hit(
        kind="fact",
        id=str(derived_id("fact")),
        score=1,
        found_by=("fact.words",),
        facts=(found_fact(),),
        sources=(SOURCE,),
    )
    text = Hit(
        kind="text", id=SOURCE.artifact_id, score=1, found_by=("text.words",), facts=(found_fact(),), sources=(SOURCE,)
    )
    assert sum(line.startswith(("1.", "2.")) for line in answer_lines(answer(fact, fact, text), "Ada")) == 1


def test_the_facts_of_a_text_that_answer_the_question_come_first() -> None:
    other = found_fact(id=str(derived_id("other")), relation="wrote_to", object="Ben")
    far = found_fact(id=str(derived_id("far")), subject="Clara", relation="likes", object="tea")
    text = Hit(
        kind="text",
        id=SOURCE.artifact_id,
        score=1,
        found_by=("text.words",),
        facts=(far, other, found_fact()),
        sources=(SOURCE,),
    )
    lines = [line[3:].partition("  [")[0] for line in answer_lines(answer(text), "Where does Ada live?")]
    assert lines[:2] == ["Ada lives in Berlin", "Ada wrote to Ben"]
    assert not any("Clara" in line for line in lines)


def test_an_address_does_not_end_a_sentence() -> None:
    assert quote("Organiser: Clara <clara.vogel@example.org> of Acme. Bye.", "organiser") == (
        "Organiser: Clara <clara.vogel@example.org> of Acme."
    )


def test_a_text_alone_is_shown_by_its_words() -> None:
    text = Hit(kind="text", id=SOURCE.artifact_id, score=1, found_by=("text.words",), sources=(SOURCE,))
    lines = list(answer_lines(answer(text), "river"))
    assert lines[0] == "1. “Since March I live in Berlin, near the river.”"
    assert "2026-03-01 09:05 UTC" in lines[1]


def test_what_steers_a_terminal_is_left_out() -> None:
    assert "\x1b" not in quote(SOURCE.text, "greets")
    assert printable("a\x1b[31mb\u202ec\nd") == "a[31mbc\nd"


def test_long_quotes_are_shortened() -> None:
    assert quote("word " * 100, "word").endswith("…")
    assert shortened("abcdef", 4) == "abc…"
    assert one_line(" a\n\tb ") == "a b"


@pytest.mark.parametrize(
    ("span", "said"),
    [
        (timedelta(milliseconds=850), "850 ms"),
        (timedelta(seconds=12), "12 s"),
        (timedelta(seconds=200), "3 min 20 s"),
        (timedelta(minutes=125), "2 h 5 min"),
    ],
)
def test_durations_are_read_by_people(span: timedelta, said: str) -> None:
    assert duration(span) == said


def test_midnight_is_a_date() -> None:
    assert day(AT) == "2026-03-01"
    assert day(AT + timedelta(minutes=1)) == "2026-03-01 00:01 UTC"
