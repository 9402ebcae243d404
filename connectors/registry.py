"""CONNECTORS: every file source there is. The command line's choices and the detection of a path are made from it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import cast

from connectors.base import FileSource
from topics.errors import Refused


@dataclass(frozen=True, slots=True)
class ConnectorSpec:
    """One row: the name, what it reads in words, and where its class is (loaded when first used)."""

    name: str
    reads: str
    target: str

    def load(self) -> FileSource:
        module, _, attribute = self.target.partition(":")
        return cast(FileSource, getattr(import_module(module), attribute)())


CONNECTORS: dict[str, ConnectorSpec] = {
    spec.name: spec
    for spec in (
        # In the order of detection: the more telling signs first.
        ConnectorSpec("slack_export", "a Slack export, as folder or zip", "connectors.slack.export:SlackExportSource"),
        ConnectorSpec("maildir", "a Maildir, or a folder of .eml files", "connectors.mail.maildir:MaildirSource"),
        ConnectorSpec(
            "slack_events", "Slack events, one JSON object a line", "connectors.slack.events:SlackEventsSource"
        ),
        ConnectorSpec("mbox", "an mbox file, or one mail as .eml", "connectors.mail.mbox:MboxSource"),
    )
}


def source_named(name: str) -> FileSource:
    """Raises Refused with the names there are."""
    if name not in CONNECTORS:
        raise Refused(f"there is no source {name!r}; choose one of {', '.join(CONNECTORS)}", field="source")
    return CONNECTORS[name].load()


def detect_source(path: Path) -> FileSource:
    """The first source that knows the path. Raises Refused with what could have been read."""
    if not path.exists():
        raise Refused(f"{path} does not exist", field="path")
    for spec in CONNECTORS.values():
        source = spec.load()
        if source.detect(path):
            return source
    kinds = "; ".join(f"{spec.name}: {spec.reads}" for spec in CONNECTORS.values())
    raise Refused(f"{path} is none of the kinds that can be read ({kinds}); name one if you know better", field="path")
