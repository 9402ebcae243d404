"""intake: admit texts. They are numbered, stored and searchable by their words; nothing here waits for a model.

Reads   remember.requests (RememberRequest)
Sends   remember.texts (RememberText), in number order per dataset
Needs   deps.admit   Cost  one transaction for all lanes that wait
Fails   a text that breaks the rules, or another request under a used key: the run ends rejected
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agents.chunking import cut
from agents.contract import Done, Fenced, GaveUp, Result, RunNote, Turn
from agents.deps import Deps
from graph.model import AdmitPlan, Admitted, NewArtifact
from topics import ids, rules
from topics.envelope import Outgoing
from topics.errors import Permanent, Refused
from topics.records import RememberRequest, RememberText, RunState

STAGE = "intake"


MAX_TAGS = 64


async def run(turn: Turn[RememberRequest], deps: Deps) -> Sequence[Result]:
    refusals = {request.run_id: refusal for request in turn.records if (refusal := refusal_of(request))}
    accepted: dict[str, RememberRequest] = {}
    for request in turn.records:
        if request.run_id not in refusals:
            accepted.setdefault(_artifact_id(request), request)
    admitted: Mapping[str, Admitted] = {}
    if accepted:
        admitted = await _admit(turn, list(accepted.values()), deps)
    results: list[Result] = []
    for delivery in turn.deliveries:
        request = delivery.record
        if (refusal := refusals.get(request.run_id)) is not None:
            results.append(GaveUp(refusal, note=_rejected(request, refusal)))
        else:
            results.append(_admitted(request, admitted[_artifact_id(request)], delivery.incoming.traceparent))
    return results


async def give_up(turn: Turn[RememberRequest], error: Permanent, deps: Deps) -> GaveUp:
    """A text that has its number but cannot be sent on: the number goes on alone, or all that follows would wait for it."""
    delivery = turn.deliveries[0]
    request = delivery.record
    note = replace(_note(request, "failed"), error_code=error.code, error=str(error))
    try:
        stored = await _admit(turn, [request], deps)
    except Fenced:
        raise
    except Permanent:
        return GaveUp(error, note=note)  # it cannot be stored, so it has no number
    bare = request.model_copy(update={"text": "", "title": "", "stated_facts": (), "needs_model": False})
    admitted = replace(stored[_artifact_id(request)], request_hash=request.request_hash)
    return GaveUp(error, _admitted(bare, admitted, delivery.incoming.traceparent).sends, note)


def refusal_of(request: RememberRequest) -> Refused | None:
    """The first broken rule. The edges check them too; a record may also be produced straight to the topic."""
    for field, value, rule in (
        ("user_id", request.user_id, rules.name),
        ("dataset", request.dataset, rules.name),
        ("text", request.text, rules.text),
    ):
        try:
            rule(value)
        except ValueError as error:
            return Refused(f"{field} {error}", field=field)
    for field, value in (
        ("title", request.title),
        ("author", request.author),
        ("session_id", request.session_id or ""),
    ):
        if len(value) > rules.MAX_SHORT_CHARACTERS:
            return Refused(
                f"{field} has {len(value):,} characters, more than the {rules.MAX_SHORT_CHARACTERS:,} allowed",
                field=field,
            )
    if len(request.tags) > MAX_TAGS or any(len(tag) > rules.MAX_SHORT_CHARACTERS for tag in request.tags):
        return Refused(
            f"tags are more than {MAX_TAGS}, or one is over {rules.MAX_SHORT_CHARACTERS:,} characters", field="tags"
        )
    if (size := len(request.text.encode())) > rules.MAX_TEXT_BYTES:
        return Refused(f"text has {size:,} bytes, more than the {rules.MAX_TEXT_BYTES:,} allowed: cut it", field="text")
    return None


def _artifact_id(request: RememberRequest) -> str:
    return str(ids.artifact_id(request.key, request.source_type, request.idempotency_key))


async def _admit(
    turn: Turn[RememberRequest], requests: Sequence[RememberRequest], deps: Deps
) -> Mapping[str, Admitted]:
    outcome = await deps.admit(_plan(turn, requests, deps))
    if outcome.fenced:
        raise Fenced.of(turn.fence)
    return outcome.admitted


def _plan(turn: Turn[RememberRequest], requests: Sequence[RememberRequest], deps: Deps) -> AdmitPlan:
    return AdmitPlan(
        key=turn.key,
        fence=turn.fence,
        log_id=deps.log_id,
        position=turn.deliveries[-1].incoming.offset,
        created_at=deps.clock.now(),
        artifacts=tuple(_artifact(request) for request in requests),
    )


def _artifact(request: RememberRequest) -> NewArtifact:
    source = request.source
    return NewArtifact(
        id=_artifact_id(request),
        run_id=str(request.run_id),
        request_hash=request.request_hash,
        text=request.text,
        title=request.title,
        kind=request.kind,
        valid_at=request.reference_time,
        accepted_at=request.accepted_at,
        author=request.author,
        source_type=request.source_type,
        connector=source.connector if source else "",
        instance_id=source.instance_id if source else "",
        object_id=source.object_id if source else "",
        version=source.version if source else "",
        url=source.url if source else "",
        session_id=request.session_id,
        tags=request.tags,
    )


def _admitted(request: RememberRequest, admitted: Admitted, traceparent: str) -> Result:
    if admitted.request_hash != request.request_hash:
        conflict = Refused(
            f"the idempotency key {request.idempotency_key} was used for another request: send this one under its own",
            field="idempotency_key",
        )
        # No dead letter: the request was understood and answered.
        return Done(note=_rejected(request, conflict, code="key_conflict"))
    text = RememberText(
        user_id=request.user_id,
        dataset=request.dataset,
        run_id=request.run_id,
        artifact_id=ids.artifact_id(request.key, request.source_type, request.idempotency_key),
        seq=admitted.seq,
        text=request.text,
        title=request.title,
        kind=request.kind,
        chunks=cut(request.text),
        valid_at=request.reference_time,
        accepted_at=request.accepted_at,
        author=request.author,
        author_type=request.author_type,
        source=request.source,
        stated_facts=request.stated_facts,
        needs_model=request.needs_model,
        redelivered=admitted.known,
    )
    send = Outgoing(
        "remember.texts",
        text,
        id=ids.sent_id("remember.texts", text.run_id),
        sender=STAGE,
        time=admitted.created_at,
        subject=str(text.run_id),
        sequence=text.seq,
        traceparent=traceparent,
    )
    note = replace(_note(request, "queryable"), artifact_id=text.artifact_id, seq=text.seq)
    return Done((send,), note)


def _rejected(request: RememberRequest, refusal: Refused, code: str = "") -> RunNote:
    return replace(_note(request, "rejected"), error_code=code or refusal.code, error=str(refusal))


def _note(request: RememberRequest, state: RunState) -> RunNote:
    return RunNote(
        request.run_id,
        request.accepted_at,
        state,
        idempotency_key=request.idempotency_key,
        source_type=request.source_type,
    )
