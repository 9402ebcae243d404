"""Servers as files: fetched or built once, kept in a cache outside the checkout, keyed by version and recipe.

A folder appears in the cache complete or not at all: it is made beside its place under a lock and then renamed. Servers are fetched by the user's
own machine and not passed on by us.
"""

from __future__ import annotations

import hashlib
import platform
import shutil
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from strandline.stack import toolchains
from strandline.stack.errors import StackError
from strandline.stack.files import locked
from strandline.stack.services import GoCommand, Jars, Service

Report = Callable[[str], None]
"""Takes one line of progress."""

_JAR_LISTS = Path(__file__).parent / "jars"
_DOWNLOADS = 8
_TRIES = 3
_REPORT_SECONDS = 10.0


@dataclass(frozen=True)
class Jar:
    """One line of a jar list: Maven coordinates and the SHA-256 of the file."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str

    @property
    def filename(self) -> str:
        return "-".join(filter(None, (self.artifact, self.version, self.classifier))) + ".jar"


def install(service: Service, cache: Path, report: Report, stopped: threading.Event) -> Path:
    """The folder with the server's files, made if need be; raises StackError.

    Two processes may ask at once: the second waits for the first. `stopped` ends a build early, with nothing left behind.
    """
    target = cache / service.name / f"{service.version}-{fingerprint(service)}"
    if target.is_dir():
        return target
    with locked(cache / service.name / "lock", lambda: report("another process is fetching it; waiting")):
        if target.is_dir():
            return target
        with _workshop(cache / service.name / ".building") as workshop:
            made = workshop / "made"
            made.mkdir()
            if isinstance(service.install, Jars):
                _fetch_jars(service, workshop, made, report, stopped)
            else:
                _build(service, service.install, workshop, made, report, stopped)
            made.rename(target)
    return target


def fingerprint(service: Service) -> str:
    """Changes with anything that changes the files: the jar list, or the module and the platform it is built for."""
    if isinstance(service.install, Jars):
        recipe = jar_list(service).read_bytes()
    else:
        recipe = f"{service.install.module} {platform.system()} {platform.machine()}".encode()
    return hashlib.sha256(recipe).hexdigest()[:12]


def jar_list(service: Service) -> Path:
    return _JAR_LISTS / f"{service.name}.txt"


def read_jars(path: Path) -> list[Jar]:
    """The jars of a list: lines of `sha256 group:artifact:version[:classifier]`, `#` starts a comment."""
    jars = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            sha256, coordinates = line.split()
            group, artifact, version, classifier = (*coordinates.split(":"), "")[:4]
            jars.append(Jar(group, artifact, version, classifier, sha256))
    return jars


@contextmanager
def _workshop(folder: Path) -> Iterator[Path]:
    """An empty folder, gone afterwards. One that a killed process left is removed first; the lock says that nobody is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fetch_jars(service: Service, workshop: Path, made: Path, report: Report, stopped: threading.Event) -> None:
    jars = read_jars(jar_list(service))
    report(f"fetching {len(jars)} jars of version {service.version} ({service.licence})")
    next_report = time.monotonic() + _REPORT_SECONDS
    with ThreadPoolExecutor(_DOWNLOADS, thread_name_prefix=f"fetch-{service.name}") as pool:
        waiting = [pool.submit(_fetch_jar, jar, workshop / "repository", made) for jar in jars]
        try:
            for done, future in enumerate(as_completed(waiting), start=1):
                future.result()
                _check(stopped)
                if time.monotonic() > next_report:
                    report(f"fetched {done} of {len(jars)} jars")
                    next_report = time.monotonic() + _REPORT_SECONDS
        finally:
            pool.shutdown(cancel_futures=True)
    report(f"fetched {len(jars)} jars")


def _fetch_jar(jar: Jar, repository: Path, made: Path) -> None:
    try:
        from jgo.maven import MavenContext
    except ModuleNotFoundError as error:
        raise StackError(
            "Fetching jars needs the extra `stack`: pip install 'strandline[stack]', or use --docker."
        ) from error
    context = MavenContext(repo_cache=repository, local_repos=[], timeout=60)
    component = context.project(jar.group, jar.artifact).at_version(jar.version)
    reason: Exception | None = None
    for _ in range(_TRIES):
        try:
            file = component.artifact(classifier=jar.classifier).resolve()
        # jgo reports an unreachable or wrong answer as RuntimeError, requests' own errors are OSErrors.
        except (OSError, RuntimeError) as error:
            reason = error
            continue
        if hashlib.sha256(file.read_bytes()).hexdigest() == jar.sha256:
            file.rename(made / jar.filename)
            return
        reason = ValueError("its SHA-256 is not the one in the list")
        file.unlink()
    raise StackError(
        f"{jar.filename} could not be fetched after {_TRIES} tries: {reason}. Check the network, then run it again."
    ) from reason


def _build(
    service: Service, recipe: GoCommand, workshop: Path, made: Path, report: Report, stopped: threading.Event
) -> None:
    free = shutil.disk_usage(workshop).free
    if free < recipe.build_bytes:
        raise StackError(
            f"Building {service.title} needs {recipe.build_bytes / 1e9:.0f} GB of disk for a while, and {workshop.parent} has "
            f"{free / 1e9:.1f} GB free. Make room, or use --docker."
        )
    toolchain = toolchains.go(recipe.go)
    variables = {
        "GOPATH": workshop / "path",
        "GOMODCACHE": workshop / "modules",
        "GOCACHE": workshop / "cache",
        "GOBIN": made,
        "GOTOOLCHAIN": "local",
        "CGO_ENABLED": "0",
        **({"GOROOT": toolchain.root} if toolchain.root else {}),
    }
    # `env` adds to what this process was given, so proxies and mirrors that a person has set up are obeyed.
    command = ["/usr/bin/env", *(f"{name}={value}" for name, value in variables.items())]
    # Module files are read-only unless asked for otherwise, and then could not be deleted.
    command += [
        toolchain.command,
        "install",
        "-v",
        "-modcacherw",
        "-ldflags=-s -w",
        f"{recipe.module}@v{service.version}",
    ]
    report(f"building version {service.version} ({service.licence}) with Go; a few minutes, only this once")
    _run_build(service, command, report, stopped)


def _run_build(service: Service, command: list[str], report: Report, stopped: threading.Event) -> None:
    started = next_report = time.monotonic()
    last: deque[str] = deque(maxlen=20)
    modules = packages = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as build:
        assert build.stdout is not None
        try:
            for line in build.stdout:
                last.append(line.rstrip())
                modules += line.startswith("go: downloading")
                packages += not line.startswith("go: ")
                _check(stopped)
                if time.monotonic() >= next_report:
                    seconds = int(time.monotonic() - started)
                    report(f"building, {seconds} s: {modules} modules fetched, {packages} packages compiled")
                    next_report = time.monotonic() + _REPORT_SECONDS
        except BaseException:
            build.kill()
            raise
    if build.returncode != 0:
        raise StackError(
            f"{service.title} {service.version} could not be built (go ended with {build.returncode}). Its last lines:\n"
            + "\n".join(last)
            + "\nCheck the network and the disk, then run it again; or use --docker."
        )


def _check(stopped: threading.Event) -> None:
    if stopped.is_set():
        raise StackError("Stopped, because another service failed or the command was interrupted. Run it again.")
