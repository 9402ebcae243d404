"""GENERATED: every file that is made from code. `python -m strandline.generated` writes them, with `--check` it compares them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

GENERATED: Mapping[str, str] = {
    "docker-compose.yml": "strandline.stack.compose:text",
    "docs/asyncapi.yaml": "topics.asyncapi:render",
    "docs/openapi.json": "strandline.api.openapi:text",
    "docs/cli.md": "strandline.cli.reference:document",
    "docs/settings.md": "strandline.setting_rows:settings_document",
    ".env.example": "strandline.setting_rows:environment_example",
}
"""By path what makes its text."""


def made(target: str) -> str:
    """The text as the code would write it now."""
    module, _, attribute = target.partition(":")
    maker: Callable[[], str] = getattr(import_module(module), attribute)
    return maker()


def stale(root: Path = ROOT) -> Sequence[str]:
    """Paths that are missing or not as the code would write them."""
    return [
        path
        for path, target in GENERATED.items()
        if not (root / path).exists() or (root / path).read_text(encoding="utf-8") != made(target)
    ]


def write(root: Path = ROOT) -> Sequence[str]:
    """Writes what is stale; gives their paths."""
    changed = stale(root)
    for path in changed:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(made(GENERATED[path]), encoding="utf-8")
    return changed


def main(arguments: Sequence[str]) -> int:
    if "--check" in arguments:
        for path in (found := stale()):
            sys.stderr.write(f"{path} is stale: run `make docs` and commit it\n")
        return 1 if found else 0
    for path in write():
        sys.stdout.write(f"wrote {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
