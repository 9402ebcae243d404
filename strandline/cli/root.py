"""COMMANDS: the tree of commands, and how an error is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from strandline.cli import about, imports, memory, output, processes, runs
from topics.errors import NeedsReauth, Outage, StrandlineError

PROGRAM = "strandline"
HELP_OPTIONS = ["-h", "--help"]
BUG = "This is a fault of Strandline. Run it again with --debug and report what it prints."


@dataclass(frozen=True, slots=True)
class Group:
    """A group of commands in a module of its own, loaded when it is used."""

    name: str
    help: str
    target: str


COMMANDS = (
    (memory.remember, 'strandline remember "Ada moved to Berlin on 1 March 2026." --wait complete'),
    (memory.search, 'strandline search "Where does Ada live?"'),
    (imports.import_, "strandline import mail.mbox"),
    (runs.runs, "strandline runs --limit 5"),
    (runs.run, "strandline run --wait"),
    (runs.tail, "strandline tail --json"),
    (processes.demo, "strandline demo"),
    (processes.up, "strandline up --workers 2"),
    (processes.serve, "strandline serve"),
    (processes.worker, "strandline worker"),
    (about.settings, "strandline settings"),
    (about.version, "strandline version --json"),
)
"""Each command with an example, which a test runs as it is written."""

GROUPS = (
    Group("stack", "Start, stop and look at Kafka, Neo4j and Weaviate on this machine.", "strandline.cli.stack:app"),
    Group(
        "topics", "Create the topics, compare them with the table, see what waits in them.", "strandline.cli.topics:app"
    ),
)


class _Lazy(TyperCommand):
    """Stands for a group in the list of commands; using it loads the group."""

    def __init__(self, group: Group) -> None:
        super().__init__(group.name, help=group.help)
        self._group = group

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return loaded(self._group).make_context(info_name, args, parent=parent, **extra)


def loaded(group: Group) -> TyperGroup:
    """The group's commands, with help as plain as all other."""
    module, _, attribute = group.target.partition(":")
    app = getattr(import_module(module), attribute)
    app.rich_markup_mode = None
    made = typer.main.get_command(app)
    assert isinstance(made, TyperGroup)
    return made


def command() -> TyperGroup:
    """The whole command line."""
    app = typer.Typer(
        name=PROGRAM,
        rich_markup_mode=None,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"max_content_width": 100, "help_option_names": HELP_OPTIONS},
        epilog="Start: strandline up. Settings: strandline settings.",
    )
    app.callback()(_root)
    for function, example in COMMANDS:
        app.command(function.__name__.rstrip("_"), epilog=f"\b\nExample: {example}")(function)
    group = typer.main.get_command(app)
    assert isinstance(group, TyperGroup)
    for row in GROUPS:
        group.add_command(_Lazy(row), row.name)
    return group


def _root(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and debug logs; may stand anywhere.")] = False,
) -> None:
    """A bi-temporal memory of the streams people work in: mail, chat, pull requests, meetings."""


def run(arguments: Sequence[str], *, debug: bool = False) -> int:
    """Runs one command; gives the exit code."""
    output.set_debug(debug)
    try:
        _refuse_foreign_packages()
        command()(list(arguments), prog_name=PROGRAM)
    except StrandlineError as error:
        if debug:
            raise
        output.tell(f"Error: {output.one_line(str(error))}")
        if hint := cure(error):
            output.tell(f"  {hint}")
        return 1
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except Exception as error:
        if debug:
            raise
        output.tell(f"Error: {type(error).__name__}: {output.shortened(str(error), 300)}")
        output.tell(f"  {BUG}")
        return 1
    return 0


def _refuse_foreign_packages() -> None:
    """`agents` and `graph` are words that others use for packages too; theirs instead of ours would fail in the oddest places."""
    home = Path(__file__).resolve().parents[2]
    for name in ("agents", "connectors", "graph", "topics"):
        spec = find_spec(name)
        found = Path(spec.origin).resolve().parents[1] if spec is not None and spec.origin else None
        if found != home:
            raise StrandlineError(
                f"the package `{name}` is not Strandline's but {found or 'missing'}: another distribution owns the name, "
                "or a folder of that name is where you stand. Give Strandline a virtual environment of its own."
            )


def cure(error: StrandlineError) -> str:
    """What to do, where the message itself cannot know it; "" if it says all."""
    match error:
        case Outage(service="kafka" | "neo4j" | "weaviate"):
            return "`strandline stack status` shows the services, `strandline settings` where they are looked for; `strandline up` starts all."
        case NeedsReauth():
            return "`strandline settings` shows which key is set and where it comes from."
        case _:
            return ""
