"""The error tree of the whole project.

    StrandlineError
    ├── Retryable            the same call may work later; `retry_after` says when, if the other side said so
    │   └── Outage           a whole service is away: pause and wait, attempts are not counted
    ├── TopicDrift           a topic is missing or not as the table TOPICS has it; a person must act
    └── Permanent            no retry can help this record
        ├── Refused          the caller's input is wrong; nothing was written
        │   ├── NotFound     what was asked for does not exist, for this caller
        │   └── TooLarge     more bytes than are taken
        ├── Undecodable      bytes on a topic that no record model reads
        └── NeedsReauth      a credential ended for good; a person must act

Whether to retry is a property of the type, so no caller needs a list of error codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import ClassVar


class StrandlineError(Exception):
    """Root of all our errors. `code` is stable and the same in HTTP answers, logs, run events and dead letters."""

    code: ClassVar[str] = "error"


class Retryable(StrandlineError):
    """Another try may succeed. `retry_after` is the wait the other side asked for; None if it gave none."""

    code: ClassVar[str] = "retryable"

    def __init__(self, message: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Outage(Retryable):
    """A service is away (`service`: kafka, neo4j, weaviate, model, embedder). Waiting does not count as an attempt."""

    code: ClassVar[str] = "outage"

    def __init__(self, service: str, message: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(message, retry_after=retry_after)
        self.service = service


class TopicDrift(StrandlineError):
    """Topics on the log differ from the table; `differences` has one sentence each, with what to do."""

    code: ClassVar[str] = "topic_drift"

    def __init__(self, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__(
            "the topics are not as this release needs them:\n" + "\n".join(f"- {one}" for one in differences)
        )


class Permanent(StrandlineError):
    """No retry can help: the record goes to dead letters and its run ends failed."""

    code: ClassVar[str] = "permanent"


class Refused(Permanent):
    """The input breaks a rule. `field` names where, "" if the whole."""

    code: ClassVar[str] = "refused"

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class NotFound(Refused):
    """What was asked for does not exist for this caller; what another may see looks the same."""

    code: ClassVar[str] = "not_found"


class TooLarge(Refused):
    """The input has more bytes than are taken; nothing was written."""

    code: ClassVar[str] = "too_large"


class Undecodable(Permanent):
    """Bytes that cannot be read as the topic's record: no JSON, a wrong type, or a newer major schema."""

    code: ClassVar[str] = "undecodable"


class NeedsReauth(Permanent):
    """A token or key was revoked or is wrong; retrying would only lock the account."""

    code: ClassVar[str] = "needs_reauth"
