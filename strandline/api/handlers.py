"""What each route does: read, ask Memory, answer. The rules are Memory's; the table is routes.py."""

from __future__ import annotations

from datetime import timedelta
from importlib.metadata import version

from aiohttp import web

from strandline.api.call import Call, answered
from strandline.api.errors import told
from strandline.api.models import ErrorBody, Health, Live, PartHealth, Ready
from strandline.api.queries import EventsQuery, NoQuery, RememberQuery, RunsQuery, UserQuery
from strandline.api.sse import send_events
from strandline.receipts import Receipt
from strandline.requests import RememberBody, SearchBody
from strandline.run_feed import Until, reached
from topics.errors import Outage, Refused


async def remember(call: Call) -> web.Response:
    query = call.query(RememberQuery)
    if query.deadline_ms is not None and query.wait is None:
        raise Refused("deadline_ms has a meaning only with wait", field="deadline_ms")
    body = await call.body(RememberBody)
    call.require(body.user_id)
    deadline = None if query.deadline_ms is None else timedelta(milliseconds=query.deadline_ms)
    receipt = await call.memory.remember(body, wait=query.wait, deadline=deadline, traceparent=call.traceparent)
    call.metrics.accepted.inc()
    return _receipt_answer(receipt, query.wait)


def _receipt_answer(receipt: Receipt, wait: Until | None) -> web.Response:
    """A run that ended badly is an error's status with the receipt inside: a script that looks only at the status must notice."""
    if receipt.status == "rejected" or (
        receipt.status == "failed" and wait and not (wait == "queryable" and receipt.queryable)
    ):
        code = receipt.error_code or receipt.status
        body = ErrorBody(error=receipt.error or receipt.note, code=code, receipt=receipt)
        return told(422 if receipt.status == "rejected" else 502, body)
    return answered(receipt, 200 if wait is not None and reached(receipt.status, wait) else 202)


async def run(call: Call) -> web.Response:
    query = call.query(UserQuery)
    call.require(query.user_id)
    return answered(await call.memory.run(query.user_id, call.request.match_info["run_id"]))


async def runs(call: Call) -> web.Response:
    query = call.query(RunsQuery)
    call.require(query.user_id)
    return answered(
        await call.memory.runs(
            query.user_id, dataset=query.dataset, state=query.state, cursor=query.cursor, limit=query.limit
        )
    )


async def events(call: Call) -> web.StreamResponse:
    query = call.query(EventsQuery)
    call.require(query.user_id)
    after = call.request.headers.get("Last-Event-ID") or query.after or None
    return await send_events(call, call.memory.events(query.user_id, dataset=query.dataset, after=after))


async def search(call: Call) -> web.Response:
    call.query(NoQuery)
    body = await call.body(SearchBody)
    call.require(body.user_id)
    return answered(await call.memory.search(body))


async def live(call: Call) -> web.Response:
    return answered(Live())


async def ready(call: Call) -> web.Response:
    state = await call.memory.ready()
    if not state.ok:
        raise Outage(state.name, f"not ready: {state.name} is away ({state.error})")
    return answered(Ready())


async def health(call: Call) -> web.Response:
    parts = tuple(PartHealth(name=part.name, ok=part.ok, error=part.error) for part in await call.memory.parts())
    status = "ok" if all(part.ok for part in parts) else "degraded"
    return answered(Health(status=status, version=version("strandline"), parts=parts))


async def metrics(call: Call) -> web.Response:
    return web.Response(
        body=call.metrics.page(),
        headers={"Content-Type": "text/plain; version=1.0.0; charset=utf-8; escaping=underscores"},
    )
