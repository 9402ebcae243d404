"""What an import leaves on disk: how far it came, and what it skipped."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from connectors.base import ReadOptions, Skipped
from topics.errors import Refused
from topics.keys import derived_id

_FORMAT = 1


def default_state_folder() -> Path:
    """Where imports keep their checkpoints: of this account, outside every checkout."""
    return Path.home() / ".local" / "state" / "strandline" / "imports"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far reading came: all up to `cursor` is durable on the log. "" is the start."""

    cursor: str = ""
    sent: int = 0

    def after(self, cursor: str, *, sent: int) -> Checkpoint:
        return Checkpoint(cursor, self.sent + sent)


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """One file for each path, log, dataset and reading of it."""

    path: Path

    @staticmethod
    def of(folder: Path, log_id: str, source: str, path: Path, options: ReadOptions) -> CheckpointFile:
        selves = sorted(options.self_ids)
        name = derived_id(
            "import",
            log_id,
            source,
            str(path.resolve()),
            options.user_id,
            options.dataset,
            options.instance_id,
            *selves,
        )
        return CheckpointFile(folder / f"{name}.json")

    def load(self) -> Checkpoint:
        """The start if there is none, or one that no longer can be read: reading again is safe, skipping is not."""
        try:
            found = json.loads(self.path.read_text(encoding="utf-8"))
            return Checkpoint(str(found["cursor"]), int(found["sent"])) if found["format"] == _FORMAT else Checkpoint()
        except (OSError, ValueError, KeyError, TypeError):
            return Checkpoint()

    def save(self, checkpoint: Checkpoint) -> None:
        """Whole or not at all, also after a power failure."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(f".{os.getpid()}.new")
        with new.open("w", encoding="utf-8") as file:
            json.dump({"format": _FORMAT, **asdict(checkpoint)}, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)


class ReportFile:
    """JSON lines, one for each item that was skipped or whose run failed. Written as they come; nothing without a path."""

    def __init__(self, path: Path | None, *, fresh: bool) -> None:
        self._path = path
        self._fresh = fresh
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        if self._path is not None:
            try:
                self._file = self._path.open("w" if self._fresh else "a", encoding="utf-8")
            except OSError as error:
                raise Refused(f"the report {self._path} cannot be written: {error.strerror}", field="report") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, items: Iterable[Skipped]) -> None:
        if self._file is not None:
            self._file.writelines(json.dumps(asdict(item), ensure_ascii=False) + "\n" for item in items)
            self._file.flush()
