"""Write `jars/<service>.txt` anew after a version in SERVICES has changed: `python -m strandline.stack.jar_lists`.

Each root is resolved alone and the first one to name an artifact wins, so a logging library cannot lower the versions of the server's own parts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from strandline.stack.installs import jar_list
from strandline.stack.services import SERVICES, Jars, Service

_HEAD = (
    "# Every jar of {title} {version}, with its SHA-256. Made by `python -m strandline.stack.jar_lists`; do not edit.\n"
)


def resolve(service: Service, recipe: Jars, cache: Path) -> str:
    """The text of the list: one line a jar, sorted by coordinates."""
    import jgo

    lines: dict[tuple[str, str, str], str] = {}
    for root in recipe.roots:
        lock = jgo.build(endpoint=root, cache_dir=cache).lockfile
        if lock is None:
            raise RuntimeError(f"{root} was resolved without a lock file.")
        for found in lock.dependencies:
            coordinates = [found.groupId, found.artifactId, found.version]
            coordinates += [found.classifier] if found.classifier else []
            key = (found.groupId, found.artifactId, found.classifier or "")
            lines.setdefault(key, f"{found.sha256}  {':'.join(coordinates)}\n")
    return _HEAD.format(title=service.title, version=service.version) + "".join(lines[key] for key in sorted(lines))


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        for service in SERVICES.values():
            if isinstance(service.install, Jars):
                jar_list(service).write_text(resolve(service, service.install, Path(cache)), encoding="utf-8")


if __name__ == "__main__":
    main()
