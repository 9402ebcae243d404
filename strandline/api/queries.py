"""What stands behind the `?` of each route, with its rules. Values are read from text, so "5" is a number here."""

from __future__ import annotations

from typing import Final, Literal, TypeVar

from multidict import MultiMapping
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from strandline.memory import PAGE_LIMIT
from strandline.requests import Name, refusal
from topics.errors import Refused
from topics.records import RunState

Q = TypeVar("Q", bound=BaseModel)


class Query(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class NoQuery(Query):
    """Nothing."""


class RememberQuery(Query):
    wait: Literal["queryable", "complete"] | None = Field(
        None, description="Answer only once the run is so far, or has ended otherwise, or the deadline has passed."
    )
    deadline_ms: int | None = Field(
        None,
        ge=1,
        le=86_400_000,
        description="Only with `wait`; absent = the server's limit (60 s unless set otherwise), more is refused.",
    )


class UserQuery(Query):
    user_id: Name = Field(description="Whose memory.")


class RunsQuery(UserQuery):
    dataset: Name | None = Field(None, description="Only runs of this dataset.")
    state: RunState | None = Field(None, description="Only runs in this state.")
    cursor: str = Field("", max_length=512, description="`next_cursor` of the page before; absent = the first page.")
    limit: int = Field(50, ge=1, le=PAGE_LIMIT, description="At most so many.")


class EventsQuery(UserQuery):
    dataset: Name | None = Field(None, description="Only events of this dataset.")
    after: str = Field(
        "",
        max_length=256,
        description="The last `id` seen, for a client that cannot send the header `Last-Event-ID`, which wins.",
    )


PATH_FIELDS: Final = {"run_id": {"type": "string", "format": "uuid"}}
"""Variable parts of paths, as JSON schemas."""


def read_query(model: type[Q], given: MultiMapping[str]) -> Q:
    """Raises Refused for a parameter that is unknown (a misspelt filter would silently not filter), twice there, or breaks a rule."""
    for name in given:
        if name not in model.model_fields:
            known = ", ".join(model.model_fields) or "no parameters"
            raise Refused(f"there is no such parameter here; known are: {known}", field=name[:80])
        if len(given.getall(name)) > 1:
            raise Refused(f"{name} is given twice", field=name)
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        raise refusal(error) from None
