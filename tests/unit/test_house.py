"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("agents", "connectors", "graph", "strandline", "topics")
DOCUMENTS = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not any(part.startswith((".", "node_modules")) for part in path.relative_to(ROOT).parts)
)


def modules() -> Iterator[tuple[Path, ast.Module]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))


def test_only_settings_read_the_environment() -> None:
    readers = {
        str(path)
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in ("environ", "environb", "getenv")
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
    }
    assert readers <= {"strandline/settings.py"}


def test_nothing_takes_the_time_without_a_zone() -> None:
    """ruff finds most of it; `utcnow` and `utcfromtimestamp` give naive times under a name that says otherwise."""
    found = [
        f"{path}:{node.lineno}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("utcnow", "utcfromtimestamp")
    ]
    assert found == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    missing = [
        target for target in targets if target and "://" not in target and not (document.parent / target).exists()
    ]
    assert missing == []


def test_every_file_that_the_architecture_names_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:agents|connectors|docs|graph|strandline|topics)/[\w./-]*)`", text))
    assert len(named) > 20
    assert [path for path in sorted(named) if not (ROOT / path).exists()] == []


def test_the_lock_names_no_address() -> None:
    """It is the same for everybody, whichever index they install from."""
    assert not re.search(r"https?://|--(?:extra-)?index-url", (ROOT / "requirements.lock").read_text(encoding="utf-8"))


def test_every_requirement_is_in_the_lock() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(name for extra in project["optional-dependencies"].values() for name in extra),
    ]
    locked = set(
        re.findall(r"^([a-z0-9.-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    )
    names = {re.split(r"[<>=!~\[; ]", requirement)[0].lower().replace("_", "-") for requirement in wanted}
    assert names - locked == set()
