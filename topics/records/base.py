"""What all records share: frozen, JSON, unknown fields ignored, a schema version."""

from __future__ import annotations

from datetime import UTC
from typing import Annotated, ClassVar

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field

from topics.keys import DatasetKey


def _utc(value: AwareDatetime) -> AwareDatetime:
    try:
        return value.astimezone(UTC) if value.utcoffset() else value
    except OverflowError:
        raise ValueError("must lie within the years 1 to 9999 in UTC") from None


Instant = Annotated[AwareDatetime, AfterValidator(_utc)]
"""An instant with a zone in the input, UTC once read. A naive time is refused: guessing a zone would move facts."""


class Part(BaseModel):
    """A piece of a record. Frozen; fields that a newer release added are ignored, never fatal. NaN and infinity are refused: JSON has neither."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        allow_inf_nan=False,
        ser_json_bytes="base64",
        val_json_bytes="base64",
        use_attribute_docstrings=True,  # the AsyncAPI document shows them
    )


class Record(Part):
    """The value of a topic. Its key, id, time and trace travel in the envelope (topics/envelope.py)."""

    SCHEMA_VERSION: ClassVar[int] = 1
    """Raised only when an older reader would do the wrong thing; a reader refuses a higher one (dead letter), it never guesses."""

    schema_version: int = Field(default=1, ge=1)
    user_id: str = Field(min_length=1)
    dataset: str = "main"

    @property
    def key(self) -> DatasetKey:
        return DatasetKey(self.user_id, self.dataset)
