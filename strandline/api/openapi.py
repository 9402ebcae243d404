"""The OpenAPI 3.1 document, made from ROUTES. `python -m strandline.api.openapi` writes docs/openapi.json; a test compares."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from strandline.api.errors import STATUS
from strandline.api.models import ErrorBody
from strandline.api.queries import PATH_FIELDS
from strandline.api.routes import ROUTES, Answered, Route
from strandline.receipts import RunUpdate

PATH: Final = "docs/openapi.json"

_DOCS: Final[dict[int, str]] = {
    status: (error.__doc__ or "").strip().splitlines()[0] for error, status in STATUS.items()
} | {
    422: "A field or parameter breaks a rule; `field` names it. Nothing was written. For remember also: the run was rejected.",
    500: "An error that nobody foresaw; the log has it.",
    502: "The run failed; `receipt` says how far it came.",
    503: "A service is away (`service`), or this one is busy; `Retry-After` says when to try again.",
}


def document() -> dict[str, Any]:
    """The whole document, as JSON values."""
    schemas, references = _schemas()
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, references)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Strandline",
            "version": version("strandline"),
            "summary": "A bi-temporal memory of the streams people work in.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:7878"}],
        "paths": paths,
        "components": {"schemas": schemas},
    }


_References = Mapping[type[BaseModel], dict[str, Any]]


def _schemas() -> tuple[dict[str, Any], _References]:
    models: dict[type[BaseModel], JsonSchemaMode] = {ErrorBody: "serialization", RunUpdate: "serialization"}
    for route in ROUTES:
        if route.body is not None:
            models[route.body] = "validation"
        models |= {answer.model: "serialization" for answer in route.answers if answer.model is not None}
    found, definitions = models_json_schema(list(models.items()), ref_template="#/components/schemas/{model}")
    return definitions["$defs"], {model: found[model, mode] for model, mode in models.items()}


def _operation(route: Route, references: _References) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "description": route.doc,
        "parameters": _parameters(route),
        "responses": {str(answer.status): _answer(answer, references) for answer in route.answers}
        | {str(status): _error(status, references) for status in route.all_errors},
    }
    if route.body is not None:
        content = {"schema": references[route.body], "example": dict(route.example)}
        operation["requestBody"] = {"required": True, "content": {"application/json": content}}
    return operation


def _parameters(route: Route) -> list[dict[str, Any]]:
    schema = route.query.model_json_schema()
    found = [
        {"name": name, "in": "path", "required": True, "schema": PATH_FIELDS[name]}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    for name, rule in schema.get("properties", {}).items():
        one = {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": _of_text(rule)}
        if "description" in rule:
            one["description"] = rule["description"]
        found.append(one)
    if route.name == "events":
        about = "The last `id` that was seen."
        found.append(
            {
                "name": "Last-Event-ID",
                "in": "header",
                "required": False,
                "description": about,
                "schema": {"type": "string"},
            }
        )
    for one in found:
        if route.body is None and one["name"] in route.example:
            one["example"] = route.example[one["name"]]
    return found


def _of_text(rule: Mapping[str, Any]) -> dict[str, Any]:
    """A parameter's schema: absent is absent, there is no null in a query."""
    schema = {name: value for name, value in rule.items() if name not in ("description", "title", "anyOf", "default")}
    for choice in rule.get("anyOf", ()):
        if choice.get("type") != "null":
            schema |= choice
    if rule.get("default") not in (None, ""):
        schema["default"] = rule["default"]
    return schema


def _answer(answer: Answered, references: _References) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    if answer.model is not None:
        schema = references[answer.model]
    elif answer.media_type == "application/json":
        schema = {"type": "object"}
    elif answer.media_type == "text/event-stream":
        schema = {
            "type": "string",
            "description": "Each `data` line is a RunUpdate.",
            "contentMediaType": "text/event-stream",
        }
    return {"description": answer.doc, "content": {answer.media_type: {"schema": schema}}}


def _error(status: int, references: _References) -> dict[str, Any]:
    told: dict[str, Any] = {
        "description": _DOCS[status],
        "content": {"application/json": {"schema": references[ErrorBody]}},
    }
    if status == 503:
        told["headers"] = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer", "minimum": 1}}}
    return told


def text() -> str:
    """The file's content."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else PATH).write_text(text())
