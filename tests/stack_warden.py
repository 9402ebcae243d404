"""Stops and deletes a test's stack when the test process is gone, however it went: `python -m tests.stack_warden FOLDER`.

Servers run in sessions of their own, so a killed test run would leave them. Standard input is a pipe whose other end only that process has.
"""

from __future__ import annotations

import sys
from pathlib import Path

from strandline.stack import NativeStack


def main() -> None:
    sys.stdin.buffer.read()
    stack = NativeStack(Path(sys.argv[1]))
    if stack.folder.exists():
        stack.delete()


if __name__ == "__main__":
    main()
