"""`strandline stack`: start, stop and look at the services on this machine."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from strandline import stack
from strandline.cli.options import JsonOption, settings
from strandline.cli.output import next_step, show, show_json, table, tell
from strandline.stack import compose as compose_file
from topics.errors import StrandlineError

app = typer.Typer(
    name="stack",
    help="Kafka, Neo4j and Weaviate on this machine: by Docker, or natively with nothing but Python.",
    no_args_is_help=True,
)

FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="PATH",
        help="The stack's data, logs and ports; else STRANDLINE_STACK_FOLDER, else your own.",
    ),
]


@app.command(epilog="Example: strandline stack up --native")
def up(
    folder: FolderOption = None,
    docker: Annotated[bool, typer.Option("--docker", help="Use Docker.")] = False,
    native: Annotated[bool, typer.Option("--native", help="Use plain processes.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Start what does not run yet, and wait until it answers.

    Without --docker or --native: as the stack was made; a new one uses Docker if an engine answers. The first native start takes some
    minutes, since Weaviate is built then.
    """
    if docker and native:
        raise typer.BadParameter("choose --docker or --native, not both")
    mode: stack.Mode = "docker" if docker else "native" if native else "auto"
    with _errors_told(), shown_progress() as progress:
        stack.up(_place(folder), mode, progress=progress)
    status(folder, as_json)
    if not as_json:
        where = f" --folder {shlex.quote(str(folder))}" if folder else ""
        next_step(f'eval "$(strandline stack env{where})"', "lets other programs find the services")


@app.command(epilog="Example: strandline stack down")
def down(folder: FolderOption = None, as_json: JsonOption = False) -> None:
    """Stop the services. Data and ports are kept for the next start."""
    with _errors_told(), shown_progress() as progress:
        stack.down(_place(folder), progress)
    if as_json:
        show_json({"stopped": True})
    else:
        show("Stopped. Data is kept; `strandline stack up` starts it again.")


@app.command(epilog="Example: strandline stack status --json")
def status(folder: FolderOption = None, as_json: JsonOption = False) -> None:
    """Show each service: does it run, does it answer, where. Exit code 1 unless all answer."""
    with _errors_told():
        rows = stack.status(_place(folder))
    if as_json:
        show_json([asdict(row) for row in rows])
    else:
        table(("service", "version", "state", "address", "process", "memory"), [_cells(row) for row in rows])
    if not all(row.healthy for row in rows):
        raise typer.Exit(1)


@app.command(epilog="Example: strandline stack logs kafka --lines 100")
def logs(
    service: Annotated[str, typer.Argument(help=f"One of {', '.join(stack.SERVICES)}.")],
    folder: FolderOption = None,
    lines: Annotated[int, typer.Option(min=1, max=10_000, help="How many of the last lines.")] = 40,
    as_json: JsonOption = False,
) -> None:
    """Show the last lines of a service's output."""
    if service not in stack.SERVICES:
        raise typer.BadParameter(f"{service!r} is none of {', '.join(stack.SERVICES)}", param_hint="SERVICE")
    with _errors_told():
        text = stack.log_tail(service, lines, _place(folder))
    if as_json:
        show_json({"service": service, "lines": text.splitlines()})
    else:
        show(text)


@app.command(epilog='Example: eval "$(strandline stack env)"')
def env(folder: FolderOption = None, as_json: JsonOption = False) -> None:
    """Print the variables that lead other programs to the services, secrets included."""
    with _errors_told():
        variables = stack.env(_place(folder))
    if as_json:
        show_json(variables)
    else:
        for name, value in variables.items():
            show(f"export {name}={shlex.quote(value)}")


@app.command(epilog="Example: strandline stack compose > docker-compose.yml")
def compose(as_json: JsonOption = False) -> None:
    """Print docker-compose.yml, as it is made from the table of services."""
    document = compose_file.with_variables()
    if as_json:
        show_json(document)
    else:
        show((compose_file.HEAD + compose_file.yaml(document)).rstrip("\n"))


def _place(folder: Path | None) -> Path | None:
    return folder or settings().stack_folder


@contextmanager
def _errors_told() -> Iterator[None]:
    try:
        yield
    except StrandlineError as error:
        tell(str(error))
        raise typer.Exit(1) from None


@contextmanager
def shown_progress() -> Iterator[stack.Progress]:
    """A line for each service that moves, on a terminal; else a plain line for each step. On standard error, beside any JSON."""
    if not sys.stderr.isatty():
        yield lambda service, line: tell(f"{service or 'stack'}: {line}")
        return
    # Not at the top: --help is shown without it.
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

    service_column, line_column = TextColumn("{task.fields[service]:<9}"), TextColumn("{task.description}")
    columns = (SpinnerColumn(finished_text="✓"), service_column, line_column, TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks: dict[str, TaskID] = {}

        def show_line(service: str, line: str) -> None:
            if service not in tasks:
                tasks[service] = bars.add_task(line, service=service or "stack", total=1)
            bars.update(tasks[service], description=line, completed=int(line.startswith("ready")))

        yield show_line


def _cells(row: stack.ServiceStatus) -> tuple[str, ...]:
    state = "ready" if row.healthy else "does not answer" if row.running else "stopped"
    memory = f"{row.memory_bytes / 1e6:.0f} MB" if row.memory_bytes else ""
    return row.name, row.version, state, row.address, str(row.pid or ""), memory
