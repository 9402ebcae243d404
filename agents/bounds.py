"""How much one text may put into the graph: a record that no topic takes, or a write that no transaction ends, would stop its dataset for ever.

The bounds are far above what a real text says. What is over them is left out and counted in the log; the text itself stays whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import structlog

from topics.records import EntityMention, FactStatement

MAX_STATEMENTS = 2000
MAX_ENTITIES = 2000
MAX_NAME_CHARACTERS = 512
"""A longer name is no name."""
MAX_DESCRIPTION_CHARACTERS = 1024

T = TypeVar("T", EntityMention, FactStatement)

_log = structlog.get_logger(__name__)


def bounded_statements(statements: Sequence[FactStatement]) -> tuple[FactStatement, ...]:
    """The first of them, each once (pieces of a text overlap), descriptions cut, without those whose names are too long."""
    fitting = [
        one
        for one in dict.fromkeys(statements)
        if max(map(len, (one.subject, one.relation, one.object))) <= MAX_NAME_CHARACTERS
    ]
    kept = tuple(_cut(one) for one in fitting[:MAX_STATEMENTS])
    _tell("statements", len(set(statements)) - len(kept))
    return kept


def bounded_entities(entities: Sequence[EntityMention]) -> tuple[EntityMention, ...]:
    """The first of them, descriptions cut, without those whose name or type is too long."""
    fitting = [one for one in dict.fromkeys(entities) if max(len(one.name), len(one.type)) <= MAX_NAME_CHARACTERS]
    kept = tuple(_cut(one) for one in fitting[:MAX_ENTITIES])
    _tell("entities", len(set(entities)) - len(kept))
    return kept


def _cut(one: T) -> T:
    if len(one.description) <= MAX_DESCRIPTION_CHARACTERS:
        return one
    return one.model_copy(update={"description": one.description[: MAX_DESCRIPTION_CHARACTERS - 1] + "…"})


def _tell(what: str, left_out: int) -> None:
    if left_out:
        _log.warning("text.bounded", what=what, left_out=left_out)
