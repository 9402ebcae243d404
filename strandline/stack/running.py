"""Where the services of a stack are, if it runs: cheap enough to be asked at the start of every command."""

from __future__ import annotations

from pathlib import Path

from strandline.stack import processes, state
from strandline.stack.addresses import Addresses
from strandline.stack.files import default_folder
from strandline.stack.processes import ServerProcess
from strandline.stack.services import SERVICES


def running_addresses(folder: Path | None) -> Addresses | None:
    """The addresses of the stack in `folder` (None: the person's own); None if there is none or it stands still.

    Whether containers run is not asked, since that takes longer than most commands: a stack on Docker counts as running.
    """
    home = folder or default_folder()
    found = state.load(home)
    if found is None or (found.mode == "native" and not _any_runs(home)):
        return None
    return Addresses.local(found.ports, state.all_secrets(home))


def _any_runs(home: Path) -> bool:
    known = (ServerProcess.read(home / name / "pid") for name in SERVICES)
    return any(process is not None and processes.alive(process) for process in known)
