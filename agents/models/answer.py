"""What a language model must answer, and how an answer becomes records: one schema for all vendors, one tolerant reading.

A schema does not make an answer right: a server that does not enforce it may leave fields out, and any model may write a date nobody can read.
So an item that cannot be used is dropped and counted, a field that cannot be read is emptied and counted, and only an answer that is no JSON
object at all is an error.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agents.models.base import Extraction, Usage
from graph.relations import canonical
from topics.errors import Retryable
from topics.records import EntityMention, FactStatement

log = structlog.get_logger(__name__)

NAME_CHARS = 200
"""A longer "name" is a sentence that a model took for one; cut, so that keys and pages stay usable."""

DESCRIPTION_CHARS = 2_000


class _Item(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True, hide_input_in_errors=True)


class AnswerEntity(_Item):
    name: str
    type: str = "other"
    description: str | None = ""


class AnswerFact(_Item):
    subject: str
    relation: str
    object: str
    description: str | None = ""
    valid_at: str | None = None
    invalid_at: str | None = None
    ends: bool | None = False


class Answer(_Item):
    """The whole answer. The lists hold raw items, so that one bad item does not cost the others."""

    entities: list[Any] | None = Field(default=None)
    facts: list[Any] | None = Field(default=None)


def _strict(model: type[BaseModel], texts: Iterable[str] = ()) -> dict[str, Any]:
    """A closed object with every field required, as both vendors' strict modes demand; `texts` lose their null."""
    schema = model.model_json_schema()
    properties = {
        name: {"type": "string"} if name in texts else _plain(part) for name, part in schema["properties"].items()
    }
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _plain(part: Mapping[str, Any]) -> dict[str, Any]:
    if part.get("anyOf") == [{"type": "boolean"}, {"type": "null"}]:
        return {"type": "boolean"}
    return {key: value for key, value in part.items() if key in ("type", "anyOf")}


_SCHEMA: Mapping[str, Any] = MappingProxyType(
    {
        "type": "object",
        "properties": {
            "entities": {"type": "array", "items": _strict(AnswerEntity, texts=("description",))},
            "facts": {"type": "array", "items": _strict(AnswerFact, texts=("description",))},
        },
        "required": ["entities", "facts"],
        "additionalProperties": False,
    }
)


def answer_schema() -> dict[str, Any]:
    """JSON Schema of an answer, in the subset that Anthropic's and OpenAI's strict structured output share. A fresh copy."""
    return deepcopy(dict(_SCHEMA))


def read_answer(text: str, *, model_id: str, usage: Usage, author: str = "", author_type: str = "person") -> Extraction:
    """The answer's text as an Extraction. Raises Retryable if it is not one JSON object: another try may bring one."""
    return normalise(_object_in(text), model_id=model_id, usage=usage, author=author, author_type=author_type)


def _object_in(text: str) -> Mapping[str, Any]:
    # Servers without enforced schemas like to wrap the object in a code fence or a sentence.
    start, end = text.find("{"), text.rfind("}")
    try:
        found = json.loads(text[start : end + 1]) if start >= 0 else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Retryable("the model's answer is not a JSON object; the call is repeated")
    return found


def normalise(
    raw: Mapping[str, Any], *, model_id: str, usage: Usage, author: str = "", author_type: str = "person"
) -> Extraction:
    """A parsed answer as records: names trimmed, types and relations in their stored form, an entity for each end of each fact."""
    faults: Counter[str] = Counter()
    try:
        answer = Answer.model_validate(raw)
    except ValidationError as error:
        raise Retryable("the model's answer has other fields than asked for; the call is repeated") from error
    entities: dict[str, EntityMention] = {}
    for item in answer.entities or ():
        _add(entities, _entity(item, faults))
    author_entity = _author(author, author_type, entities)
    statements = []
    for item in answer.facts or ():
        statement = _statement(item, entities, author_entity, faults)
        if statement is not None:
            statements.append(statement)
    if faults:
        log.warning("model.answer.repaired", model_id=model_id, **dict(faults))
    return Extraction(tuple(entities.values()), tuple(dict.fromkeys(statements)), model_id, usage)


def _author(name: str, type: str, entities: dict[str, EntityMention]) -> EntityMention | None:
    """Who "I" is; listed as an entity only once a fact needs it. What the caller knows of its type fills what the answer left open."""
    plain = name_of(name)
    if not plain:
        return None
    listed = entities.get(plain.casefold(), EntityMention(name=plain))
    known = (
        listed
        if listed.type != "other"
        else EntityMention(name=listed.name, type=type_key(type), description=listed.description)
    )
    if plain.casefold() in entities:
        entities[plain.casefold()] = known
    return known


def _add(entities: dict[str, EntityMention], entity: EntityMention | None) -> None:
    """Keeps the first spelling of a name; a later one may bring the type or description that was missing."""
    if entity is None:
        return
    key = entity.name.casefold()
    old = entities.get(key)
    if old is None:
        entities[key] = entity
    elif (old.type == "other" and entity.type != "other") or (not old.description and entity.description):
        entities[key] = EntityMention(
            name=old.name,
            type=old.type if old.type != "other" else entity.type,
            description=old.description or entity.description,
        )


def _entity(item: object, faults: Counter[str]) -> EntityMention | None:
    try:
        read = AnswerEntity.model_validate(item)
    except ValidationError:
        faults["entities_dropped"] += 1
        return None
    name = name_of(read.name)
    if not name:
        faults["entities_dropped"] += 1
        return None
    return EntityMention(name=name, type=type_key(read.type), description=_sentence(read.description))


def _statement(
    item: object, entities: dict[str, EntityMention], author: EntityMention | None, faults: Counter[str]
) -> FactStatement | None:
    try:
        read = AnswerFact.model_validate(item)
    except ValidationError:
        faults["facts_dropped"] += 1
        return None
    subject, relation, thing = name_of(read.subject), canonical(read.relation), name_of(read.object)
    if not subject or not relation or not thing or subject.casefold() == thing.casefold():
        faults["facts_dropped"] += 1
        return None
    subject_entity, object_entity = _end(subject, entities, author), _end(thing, entities, author)
    valid_at, invalid_at = _instant(read.valid_at, faults), _instant(read.invalid_at, faults)
    if valid_at is not None and invalid_at is not None and invalid_at <= valid_at:
        # An interval that ends before it begins says nothing; the start is what a text states more often.
        faults["dates_dropped"] += 1
        invalid_at = None
    return FactStatement(
        subject=subject_entity.name,
        subject_type=subject_entity.type,
        relation=relation,
        object=object_entity.name,
        object_type=object_entity.type,
        description=_sentence(read.description),
        valid_at=valid_at,
        invalid_at=invalid_at,
        ends=bool(read.ends),
    )


def _end(name: str, entities: dict[str, EntityMention], author: EntityMention | None) -> EntityMention:
    """The entity of a fact's end, made if the answer forgot to list it."""
    key = name.casefold()
    if author is not None and key in ("i", "me", "author", "the author", author.name.casefold()):
        key = author.name.casefold()
        return entities.setdefault(key, author)
    return entities.setdefault(key, EntityMention(name=name))


_SPACE = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
"""White space, control characters, and the invisible ones that make two equal names differ."""


def name_of(text: str) -> str:
    """A name on one line without control or invisible characters, at most NAME_CHARS; "" if nothing is left."""
    return _SPACE.sub(" ", text).strip(" \"'“”‘’`").strip()[:NAME_CHARS].strip()


def _sentence(text: str | None) -> str:
    return _SPACE.sub(" ", text or "").strip()[:DESCRIPTION_CHARS].strip()


def type_key(text: str) -> str:
    """A type in its stored form, e.g. `place`; "other" for anything that is not a short word or phrase."""
    plain = re.sub(r"[\W_]+", "_", text.strip().lower()).strip("_")
    plain = {"org": "organization", "organisation": "organization", "company": "organization", "location": "place"}.get(
        plain, plain
    )
    return plain if plain and len(plain) <= 40 else "other"


_PARTIAL = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?$")


def _instant(text: str | None, faults: Counter[str]) -> datetime | None:
    """An ISO 8601 date of any exactness as the first instant it covers, UTC; None for none, or for one that cannot be read (counted)."""
    plain = (text or "").strip()
    if plain.lower() in ("", "null", "none", "unknown", "n/a"):
        return None
    try:
        partial = _PARTIAL.match(plain)
        if partial:
            year, month, day = (int(part) if part else 1 for part in partial.groups())
            return datetime(year, month, day, tzinfo=UTC)
        at = datetime.fromisoformat(plain)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        faults["dates_dropped"] += 1
        return None
