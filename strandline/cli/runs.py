"""`strandline runs`, `run` and `tail`: what became of the texts, as the run events tell it."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from strandline.cli import output
from strandline.cli.options import JsonOption, UrlOption, UserOption, settings

if TYPE_CHECKING:
    from strandline.client import Client
    from strandline.receipts import Run, RunPage, RunUpdate

_RECHECK = timedelta(seconds=2)
"""How long a watcher trusts that no event means no news."""


def runs(
    state: Annotated[
        str | None, typer.Option(metavar="STATE", help="Only runs in this state, e.g. complete or failed.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="Runs on a page.")] = 20,
    cursor: Annotated[str, typer.Option(metavar="CURSOR", help="Go on behind the page that gave this.")] = "",
    user: UserOption = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", "-d", metavar="NAME", help="Only of this dataset.")
    ] = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """List runs, the newest first. A run is what becomes of one remembered text."""
    page = output.run(_runs(url or settings().url, user or settings().user, dataset, state, cursor, limit))
    if as_json:
        output.show_json(page)
        return
    rows = [
        (
            run.accepted_at.strftime("%Y-%m-%d %H:%M:%S"),
            run.status,
            run.dataset,
            run.source_type,
            str(run.run_id),
            run.error,
        )
        for run in page.runs
    ]
    output.table(("accepted (UTC)", "state", "dataset", "source", "run", "error"), rows)
    if page.next_cursor:
        output.next_step(f"strandline runs --cursor {page.next_cursor}", "older runs")
    elif page.runs:
        output.next_step(f"strandline run {page.runs[0].run_id}", "its stages")
    else:
        output.next_step('strandline remember "…"', "there are no such runs")


async def _runs(url: str, user: str, dataset: str | None, state: str | None, cursor: str, limit: int) -> RunPage:
    from strandline.client import Client

    async with Client(url) as client:
        return await client.runs(user, dataset=dataset, state=state, cursor=cursor, limit=limit)


def run(
    run_id: Annotated[
        UUID | None, typer.Argument(metavar="[ID]", help="The run's id, as remember and runs show it; else the newest.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Return when it is complete, failed or rejected.")] = False,
    deadline: Annotated[float, typer.Option(min=0.001, metavar="SECONDS", help="How long --wait waits.")] = 60,
    user: UserOption = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a run with its stages.

    With --wait the exit code is 1 unless the run is complete.
    """
    found = output.run(
        _run(url or settings().url, user or settings().user, run_id, timedelta(seconds=deadline if wait else 0))
    )
    if as_json:
        output.show_json(found)
    else:
        _show_run(found)
    if wait and found.status != "complete":
        raise typer.Exit(1)


async def _run(url: str, user: str, run_id: UUID | None, patience: timedelta) -> Run:
    from strandline.client import Client
    from topics.errors import NotFound

    async with Client(url) as client:
        if run_id is None:
            newest = (await client.runs(user, limit=1)).runs
            if not newest:
                raise NotFound(f"{user} has no run yet: `strandline remember` starts one")
            run_id = newest[0].run_id
        return await _final_run(client, user, run_id, patience) if patience else await client.run(user, run_id)


async def _final_run(client: Client, user: str, run_id: UUID, patience: timedelta) -> Run:
    """The run once it is final, or as it is when patience ends. Its events say when to look."""
    from strandline.receipts import FINAL_STATES
    from topics.errors import NotFound

    news = asyncio.Event()

    async def listen() -> None:
        async for _, event in client.events(user):
            if event.run_id == run_id:
                news.set()

    listening = asyncio.create_task(listen())
    found: Run | None = None
    try:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience.total_seconds()):
                while found is None or found.status not in FINAL_STATES:
                    news.clear()
                    with contextlib.suppress(NotFound):  # accepted a moment ago: the run log follows
                        found = await client.run(user, run_id)
                    if found is None or found.status not in FINAL_STATES:
                        with contextlib.suppress(TimeoutError):
                            await asyncio.wait_for(news.wait(), _RECHECK.total_seconds())
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    return found if found is not None else await client.run(user, run_id)


def _show_run(run: Run) -> None:
    output.show(f"{run.status}  run {run.run_id}  ({run.source_type}, dataset {run.dataset})")
    if run.note:
        output.show(f"  {run.note}")
    if run.error:
        output.show(f"  {output.one_line(run.error)} ({run.error_code})")
    rows = []
    for stage in run.stages:
        took = "" if stage.finished_at is None else output.duration(stage.finished_at - stage.started_at)
        rows.append(
            (stage.stage, stage.state, f"{stage.started_at:%H:%M:%S.%f}"[:-3], took, str(stage.attempts), stage.error)
        )
    output.table(("stage", "state", "started (UTC)", "took", "attempts", "error"), rows)
    if run.fact_ids or run.closed_fact_ids:
        output.show(f"{output.counted(len(run.fact_ids), 'fact')} stated, {len(run.closed_fact_ids)} ended")
    if run.status in ("failed", "rejected"):
        output.next_step("strandline runs --state failed", "other runs that failed")
    elif run.status == "complete":
        output.next_step('strandline search "…"', "ask for what it said")
    else:
        output.next_step(f"strandline run {run.run_id} --wait", "follow it")


def tail(
    after: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="Continue behind this token, as --json shows it; else now.")
    ] = None,
    user: UserOption = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", "-d", metavar="NAME", help="Only of this dataset.")
    ] = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show run events as they happen, until Ctrl-C.

    An event may come twice, always with the same event_id. With --json each line holds one event and the token to continue behind it.
    """
    output.run(_tail(url or settings().url, user or settings().user, dataset, after, as_json))


async def _tail(url: str, user: str, dataset: str | None, after: str | None, as_json: bool) -> None:
    from strandline.client import Client

    async with Client(url) as client:

        def connected() -> None:
            if not as_json:
                output.tell(f"Events of {user}'s runs at {url}; Ctrl-C ends.")

        async for token, event in client.events(user, dataset=dataset, after=after, connected=connected):
            if as_json:
                output.show_json({"token": token, **event.model_dump(mode="json")})
            else:
                output.show(event_line(event))


def event_line(event: RunUpdate) -> str:
    """Time, run, state, and the stage it is in."""
    stage = f"  {event.stage.stage} {event.stage.state}" if event.stage is not None else ""
    error = f"  {output.one_line(event.error)}" if event.error else ""
    return f"{event.at:%H:%M:%S}  {event.run_id}  {event.state:<10}{stage}{error}"
