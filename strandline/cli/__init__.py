"""The command line. Nothing heavy is imported before a command runs, so that `--help` answers at once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Runs one command and ends the process: 0 done, 1 an error, 2 wrong usage, 130 Ctrl-C. A traceback only with --debug, anywhere before `--`."""
    from strandline.cli import root

    given = list(sys.argv[1:] if arguments is None else arguments)
    options = given[: given.index("--")] if "--" in given else given
    debug = "--debug" in options
    if debug:
        given.remove("--debug")
    sys.exit(root.run(given, debug=debug))
