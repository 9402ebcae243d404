"""What can go wrong with the services themselves."""

from __future__ import annotations

from typing import ClassVar

from topics.errors import StrandlineError


class StackError(StrandlineError):
    """A service could not be obtained, started, reached or stopped. The message ends with what to do."""

    code: ClassVar[str] = "stack"
