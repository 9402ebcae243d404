"""The API's descriptions of itself: OpenAPI 3.1 and a page of routes, both made from ROUTES when first asked for."""

from __future__ import annotations

import json
from functools import cache
from html import escape

from aiohttp import web

from strandline.api.call import Call


async def openapi(call: Call) -> web.Response:
    return web.Response(text=_openapi_text(), content_type="application/json")


async def docs(call: Call) -> web.Response:
    return web.Response(
        text=_page(),
        content_type="text/html",
        headers={"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"},
    )


@cache
def _openapi_text() -> str:
    from strandline.api.openapi import document  # the table names this file's handlers, so it is read later

    return json.dumps(document(), ensure_ascii=False)


@cache
def _page() -> str:
    from strandline.api.routes import ROUTES

    sections = "".join(
        f"<h2 id={escape(route.name)}><code>{route.method} {escape(route.path)}</code></h2>"
        f"<p><strong>{escape(route.summary)}.</strong> {escape(route.doc)}</p>"
        + _parameters(route.query.model_json_schema())
        + (_parameters(route.body.model_json_schema(), "Body") if route.body is not None else "")
        + (f"<pre>{escape(json.dumps(route.example, indent=2))}</pre>" if route.example else "")
        + "<p>Answers: "
        + "; ".join(f"{answer.status} {escape(answer.doc)}" for answer in route.answers)
        + f" Errors: {', '.join(map(str, route.all_errors))}.</p>"
        for route in ROUTES
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>Strandline API</title>"
        "<style>body{font:16px/1.5 system-ui;max-width:52rem;margin:2rem auto;padding:0 1rem}pre{background:#f4f4f4;padding:1rem;"
        "overflow:auto}td{padding:.2rem .8rem .2rem 0;vertical-align:top}</style>"
        "<h1>Strandline API</h1><p>The same as <a href=/openapi.json>OpenAPI 3.1</a>. Every answer that is not 2xx has the body "
        f"<code>{{&quot;error&quot;: text, &quot;code&quot;: code}}</code>.</p>{sections}</html>"
    )


def _parameters(schema: dict[str, object], title: str = "Parameters") -> str:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not properties:
        return ""
    required = schema.get("required")
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code>{' *' if isinstance(required, list) and name in required else ''}</td>"
        f"<td>{escape(str(rule.get('description', '')))}</td></tr>"
        for name, rule in properties.items()
    )
    return f"<p>{title} (* = needed):</p><table>{rows}</table>"
