"""`strandline import`: mail and chat from files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from strandline.cli import output
from strandline.cli.options import DatasetOption, JsonOption, UserOption, settings

if TYPE_CHECKING:
    from strandline.importing import Import, Observer, Tally


def import_(
    path: Annotated[Path, typer.Argument(help="An mbox, Maildir, .eml file or folder, Slack export, or Slack events.")],
    source: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help="What the path is: mbox, maildir, slack_export, slack_events; else seen from it."
        ),
    ] = None,
    me: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS", help="A mail address or Slack user id of yours; may be given again."),
    ] = None,
    instance: Annotated[
        str, typer.Option(metavar="NAME", help="The account or workspace it belongs to, if one dataset has several.")
    ] = "",
    wait: Annotated[
        bool | None, typer.Option("--wait/--no-wait", help="Follow the runs to their end; else only on a terminal.")
    ] = None,
    again: Annotated[
        bool,
        typer.Option("--again", help="Read from the start, also what an earlier import has sent; adds nothing twice."),
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", dir_okay=False, help="Write what was skipped or failed, and why, as JSON lines."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", file_okay=False, help="Where to keep how far it came; else in your account's state."
        ),
    ] = None,
    user: UserOption = None,
    dataset: DatasetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import mail or chat from a file or folder.

    Every item is sent, or named with the reason why not. Stop it at any time: the same command goes on where it was, and importing again adds
    nothing twice. The texts are read by workers (`strandline up`); deletions in the source are sent, but not applied yet.
    """
    from connectors.base import ReadOptions
    from connectors.registry import detect_source, source_named
    from strandline.import_state import default_state_folder
    from strandline.importing import Import

    job = Import(
        path=path,
        source=detect_source(path) if source is None else source_named(source),
        options=ReadOptions(
            user_id=user or settings().user,
            dataset=dataset or settings().dataset,
            instance_id=instance,
            self_ids=frozenset(name.lower() if "@" in name else name for name in me or ()),
        ),
        state_folder=state or default_state_folder(),
        report=report,
        again=again,
        follow=output.on_terminal() if wait is None else wait,
    )
    with progress() as observer:
        tally = _import(job, observer)
    if as_json:
        output.show_json(tally_json(tally))
    else:
        show_tally(tally, job)
    if tally.failed:
        raise typer.Exit(1)


def _import(job: Import, observer: Observer) -> Tally:
    from strandline.importing import run_import
    from strandline.log_wiring import open_log

    last: list[Tally] = []

    def observe(tally: Tally) -> None:
        last[:] = [tally]
        observer(tally)

    async def run() -> Tally:
        async with open_log(settings()) as log:
            await log.start()
            return await run_import(job, log, observe)

    try:
        return output.run(run())
    except typer.Exit:
        _tell_interrupted(last[0] if last else None)
        raise


def _tell_interrupted(tally: Tally | None) -> None:
    if tally is None:
        output.tell("Interrupted before anything was sent.")
    elif tally.phase == "remembering":
        output.tell(f"All {tally.sent} are sent and safe on the log; {tally.awaited} are still being remembered.")
        output.next_step("strandline runs", "see them end")
    else:
        output.tell(f"Interrupted: {tally.sent} sent. Nothing is lost; the same command goes on from here.")


def tally_json(tally: Tally) -> dict[str, object]:
    """The report as a JSON object."""
    return {
        "sent": tally.sent,
        "sent_before": tally.sent_before,
        "skipped": dict(tally.skipped),
        "deletes_not_applied": tally.deletes,
        "without_words": tally.wordless,
        "complete": tally.complete,
        "failed": tally.failed,
        "awaited": tally.awaited,
        "nothing_new": tally.nothing_new,
    }


def show_tally(tally: Tally, job: Import) -> None:
    """The report for people."""
    before = f" ({tally.sent_before} by an earlier import of it)" if tally.sent_before else ""
    if tally.nothing_new:
        output.show(f"Nothing new in {job.path}{before}.")
        output.next_step('strandline search "…"', "--again would read it from the start")
        return
    output.show(f"Sent       {tally.sent}{before}")
    if job.follow:
        output.show(f"Complete   {tally.complete}")
        if tally.failed:
            output.show(f"Failed     {tally.failed}")
    for reason, count in tally.skipped.most_common():
        output.show(f"Skipped    {count}  {reason}")
    if tally.wordless:
        output.show(f"No words   {tally.wordless}  nothing to remember in them")
    if tally.deletes:
        output.show(f"Deletions  {tally.deletes}  sent, but not applied yet: what they delete stays")
    if (tally.skipped or tally.failed) and job.report is None:
        output.next_step(f"strandline import {job.path} --again --report skipped.jsonl", "where each of them lies")
    elif job.follow:
        output.next_step('strandline search "…"', "ask for what they say")
    else:
        output.next_step("strandline tail", "see them being remembered")


# ── progress ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_now = time.monotonic
_LINE_SECONDS = 10.0
_STILL_SECONDS = 15.0
_STILL = "nothing has moved for a while: does a worker run? `strandline up` starts one; Ctrl-C loses nothing"


@contextmanager
def progress() -> Iterator[Observer]:
    """Bars on a terminal, else a line every ten seconds; on standard error, beside the answer."""
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with _bars(console) as observer:
            yield observer
    else:
        yield _lines()


def _state(tally: Tally) -> str:
    parts = [f"{tally.sent} sent"]
    if tally.skipped:
        parts.append(f"{tally.skipped.total()} skipped")
    if tally.complete:
        parts.append(f"{tally.complete} complete")
    if tally.failed:
        parts.append(f"{tally.failed} failed")
    return ", ".join(parts)


def _read_bytes(tally: Tally) -> tuple[int, int]:
    """Bytes read, and in all, at least one: all are read when the phase is over, also where nothing was new."""
    total = max(tally.total_bytes, tally.done_bytes, 1)
    return (total if tally.phase in ("remembering", "done") else tally.done_bytes), total


def _is_still(tally: Tally) -> bool:
    return tally.phase == "remembering" and _now() - tally.moved_at > _STILL_SECONDS


def _lines() -> Observer:
    began = _now()
    spoken = began

    def observe(tally: Tally) -> None:
        nonlocal spoken
        now = _now()
        if now - spoken < _LINE_SECONDS:
            return
        spoken = now
        done, total = _read_bytes(tally)
        rate = (tally.complete if tally.phase == "remembering" else tally.sent) / (now - began)
        output.tell(
            f"{tally.phase}: {100 * done / total:.0f} % read, {_state(tally)}, {rate:.0f}/s"
            + (f"; {_STILL}" if _is_still(tally) else "")
        )

    return observe


@contextmanager
def _bars(console: object) -> Iterator[Observer]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    assert isinstance(console, Console)
    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[state]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as bars:
        reading = bars.add_task("reading", total=None, state="")
        remembering = bars.add_task("remembering", total=None, state="", visible=False)

        def observe(tally: Tally) -> None:
            waits = tally.phase == "waiting for the log"
            done, total = _read_bytes(tally)
            bars.update(
                reading,
                total=total,
                completed=done,
                state=f"{_state(tally)}{'; the log is away, waiting' if waits else ''}",
            )
            ended = tally.complete + tally.failed
            if ended or tally.phase == "remembering":
                state = f"{ended} of {ended + tally.awaited}" + (f"; {_STILL}" if _is_still(tally) else "")
                bars.update(remembering, total=ended + tally.awaited, completed=ended, state=state, visible=True)

        yield observe
