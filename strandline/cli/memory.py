"""`strandline remember` and `strandline search`: a text goes in, answers come out."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from strandline.cli import output
from strandline.cli.options import DatasetOption, JsonOption, UrlOption, UserOption, instant, settings
from topics.errors import Refused

if TYPE_CHECKING:
    from strandline.api.models import SearchPage
    from strandline.receipts import Receipt


_WORD = re.compile(r"\w{1,40}")
_WORDS_PROPOSED = 4


def remember(
    text: Annotated[str | None, typer.Argument(help="The text; - reads standard input.")] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", exists=True, dir_okay=False, help="Read the text from a file.")
    ] = None,
    title: Annotated[str, typer.Option(help="A line that names the text.")] = "",
    author: Annotated[str, typer.Option(help='Who says "I" in the text.')] = "",
    at: Annotated[
        datetime | None,
        typer.Option(parser=instant, metavar="TIME", help='What "now" means in the text; else the time of acceptance.'),
    ] = None,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Idempotency key: the same text under it is remembered once.")
    ] = None,
    wait: Annotated[
        Literal["queryable", "complete"] | None,
        typer.Option(help="Return when the text can be found, or when its facts are there too."),
    ] = None,
    deadline: Annotated[float, typer.Option(min=0.001, metavar="SECONDS", help="How long --wait waits.")] = 30,
    user: UserOption = None,
    dataset: DatasetOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remember a text.

    Returns once the text is durable: it survives a crash of anything. Its facts follow within seconds; --wait waits for them.
    """
    said = _text(text, file)
    receipt = output.run(
        _remember(
            url or settings().url,
            {
                "user_id": user or settings().user,
                "dataset": dataset or settings().dataset,
                "text": said,
                "title": title,
                "author": author,
                "reference_time": at,
                "idempotency_key": key,
            },
            wait,
            timedelta(seconds=deadline),
        )
    )
    reached = receipt.status not in ("failed", "rejected") and wait in (None, receipt.status, _below(receipt.status))
    if as_json:
        output.show_json(receipt)
    else:
        _show_receipt(receipt)
        output.next_step(*_after_remember(receipt, said, user=user, dataset=dataset, reached=reached))
    if not reached:
        raise typer.Exit(1)


def _after_remember(
    receipt: Receipt, text: str, *, user: str | None, dataset: str | None, reached: bool
) -> tuple[str, str]:
    """The next command and why: a search with the text's own first words, where it was put."""
    if not reached:
        return f"strandline run {receipt.run_id} --wait{_written({'--user': user})}", "follow it"
    words = " ".join(found.group() for found in islice(_WORD.finditer(text), _WORDS_PROPOSED))
    if not words:
        return "strandline runs", "see it being remembered"
    return f"strandline search {shlex.quote(words)}{_written({'--user': user, '--dataset': dataset})}", "find it"


def _written(options: Mapping[str, str | None]) -> str:
    return "".join(f" {name}={shlex.quote(value)}" for name, value in options.items() if value)


def _below(status: str) -> str | None:
    """The wait that a status further on fulfils as well."""
    return "queryable" if status in ("enriching", "complete") else None


def _text(text: str | None, file: Path | None) -> str:
    if (text is None) == (file is None):
        raise typer.BadParameter("give a text, - for standard input, or --file PATH: one of them")
    raw = sys.stdin.buffer.read() if text == "-" else file.read_bytes() if file is not None else None
    try:
        return raw.decode() if raw is not None else text or ""
    except UnicodeDecodeError as error:
        raise Refused(
            f"{file or 'standard input'} is not UTF-8 at byte {error.start}: convert it first", field="text"
        ) from error


async def _remember(
    url: str, fields: dict[str, object], wait: Literal["queryable", "complete"] | None, deadline: timedelta
) -> Receipt:
    from strandline.client import Client
    from strandline.requests import RememberBody, validated

    body = validated(RememberBody, fields)
    async with Client(url) as client:
        return await client.remember(body, wait=wait, deadline=deadline)


def _show_receipt(receipt: Receipt) -> None:
    output.show(f"{receipt.status}  run {receipt.run_id}")
    if receipt.note:
        output.show(f"  {receipt.note}")
    if receipt.error:
        output.show(f"  {receipt.error} ({receipt.error_code})")
    if receipt.fact_ids or receipt.closed_fact_ids:
        output.show(f"  {output.counted(len(receipt.fact_ids), 'fact')} stated, {len(receipt.closed_fact_ids)} ended")


def search(
    query: Annotated[str, typer.Argument(help="Words or a question.")],
    as_of: Annotated[
        datetime | None, typer.Option(parser=instant, metavar="TIME", help="What was true then; else now.")
    ] = None,
    known_at: Annotated[
        datetime | None, typer.Option(parser=instant, metavar="TIME", help="As it was believed then; else now.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="At most so many hits.")] = 5,
    cursor: Annotated[str, typer.Option(metavar="CURSOR", help="Go on behind the page that gave this.")] = "",
    user: UserOption = None,
    dataset: DatasetOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search the memory: what is true now, or was at another time.

    Each answer has its dates and the texts it is from. A date alone is its midnight in UTC.
    """
    fields: dict[str, object] = {
        "user_id": user or settings().user,
        "dataset": dataset or settings().dataset,
        "query": query,
        "as_of": as_of,
        "known_at": known_at,
        "limit": limit,
        "cursor": cursor,
    }
    answer = output.run(_search(url or settings().url, fields))
    if as_json:
        output.show_json(answer)
        return
    from strandline.cli.answers import answer_lines

    for line in answer_lines(answer, query):
        output.show(line)
    if answer.degraded:
        output.tell(f"Incomplete: {', '.join(answer.degraded)} was away; this is what the others found.")
    if not answer.hits:
        output.next_step("strandline runs", "is the text that should say it complete?")
    elif as_of is None:
        output.next_step(f"strandline search {shlex.quote(query)} --as-of 2025-01-01", "what was true then")
    else:
        output.next_step(f"strandline search {shlex.quote(query)}", "what is true now")


async def _search(url: str, fields: dict[str, object]) -> SearchPage:
    from strandline.client import Client
    from strandline.requests import SearchBody, validated

    body = validated(SearchBody, fields)
    async with Client(url) as client:
        return await client.search(body)
