"""`docs/cli.md`, made from the commands: `python -m strandline.cli.reference > docs/cli.md`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from strandline.cli import root

_WIDTH = 100


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its whole name, groups first, in the order of `--help`."""
    top = root.command()
    yield root.PROGRAM, top
    groups = {group.name: group for group in root.GROUPS}
    for name, command in top.commands.items():
        if name not in groups:
            yield f"{root.PROGRAM} {name}", command
            continue
        loaded = root.loaded(groups[name])
        yield f"{root.PROGRAM} {name}", loaded
        for inner, inner_command in loaded.commands.items():
            yield f"{root.PROGRAM} {name} {inner}", inner_command


def help_text(name: str, command: Any) -> str:
    """What `--help` prints, always equally wide."""
    context = typer.Context(
        command,
        info_name=name,
        terminal_width=_WIDTH,
        max_content_width=_WIDTH,
        help_option_names=root.HELP_OPTIONS,
    )
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines())


def document() -> str:
    """The whole page."""
    parts = [
        "# Command line",
        "",
        "Written by `make docs` from the commands' own help.",
        "",
        "Answers go to standard output, messages to standard error. On a terminal lists are tables, in a pipe tab-separated lines; `--json` prints",
        "JSON and nothing else. Exit codes: 0 done, 1 an error, 2 wrong usage, 130 ended by Ctrl-C. `--debug`, anywhere, shows tracebacks.",
    ]
    for name, command in commands():
        parts += ["", f"## {name}", "", "```text", help_text(name, command), "```"]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    typer.echo(document(), nl=False)
