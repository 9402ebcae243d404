"""router: decide what becomes of a source's event. For now all that has a text is remembered.

Reads   source.events (SourceEvent)
Sends   remember.requests (RememberRequest), in order per dataset
Needs   nothing      Cost  none
Drops   deletions and events without any text: counted, never stored
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from agents.contract import Done, Result, RunNote, Turn
from agents.deps import Deps
from topics import ids, rules
from topics.envelope import Outgoing
from topics.records import RememberRequest, SourceEvent, SourceObject

STAGE = "router"

SOURCE_TYPE = "source"
"""Part of a save's identity, so the same for all connectors: one mail is one memory, whichever file or account it came by."""


def run_id_of(event: SourceEvent) -> UUID:
    """The run that an event will have: known to whoever sends it, so that an import can follow its runs."""
    return ids.run_id(event.key, SOURCE_TYPE, str(event.event_id), event.content_hash)


def is_remembered(event: SourceEvent) -> bool:
    """A deletion takes nothing back yet, and an event without words says nothing."""
    return event.change == "upsert" and bool(event.text.strip() or event.title.strip() or event.stated_facts)


async def run(turn: Turn[SourceEvent], deps: Deps) -> Sequence[Result]:
    return [_route(delivery.record, delivery.incoming.traceparent) for delivery in turn.deliveries]


def _route(event: SourceEvent, traceparent: str) -> Done:
    if not is_remembered(event):
        return Done()
    request = request_of(event)
    send = Outgoing(
        "remember.requests",
        request,
        id=ids.sent_id("remember.requests", request.run_id),
        sender=STAGE,
        time=request.accepted_at,
        subject=str(request.run_id),
        traceparent=traceparent,
    )
    note = RunNote(
        request.run_id,
        request.accepted_at,
        "accepted",
        idempotency_key=request.idempotency_key,
        source_type=request.source_type,
    )
    return Done((send,), note)


def request_of(event: SourceEvent) -> RememberRequest:
    """The request that remembers an event; the same event gives the same request."""
    # NUL cannot be stored by every engine on the path, and no text means anything by it.
    text = (event.text.strip() or event.title.strip() or _stated_text(event)).replace("\x00", "")
    return RememberRequest(
        user_id=event.user_id,
        dataset=event.dataset,
        run_id=run_id_of(event),
        idempotency_key=str(event.event_id),
        request_hash=event.content_hash,
        text=text,
        title=event.title.replace("\x00", "")[: rules.MAX_SHORT_CHARACTERS],
        kind="episode",
        reference_time=event.occurred_at,
        accepted_at=event.observed_at,
        source_type=SOURCE_TYPE,
        source=SourceObject(
            connector=event.connector,
            instance_id=event.instance_id,
            object_id=event.object_id,
            version=event.version,
            url=event.url,
        ),
        author=event.actor.label[: rules.MAX_SHORT_CHARACTERS],
        author_type=event.actor.kind,
        stated_facts=event.stated_facts,
        needs_model=bool(event.text.strip()),
    )


def _stated_text(event: SourceEvent) -> str:
    """A payload without prose is remembered by the sentences of its facts."""
    return "\n".join(fact.description or f"{fact.subject} {fact.relation} {fact.object}" for fact in event.stated_facts)
