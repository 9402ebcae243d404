"""What a mail's headers say without a model: facts for the rules, and facts for the graph.

Addresses wrote to addresses: that is what a header states. A display name is a claim of the sender; it appears in one fact only,
`has_address`, which says so. A domain proves no employer.
"""

from __future__ import annotations

from datetime import datetime

from connectors.mail.bodies import Body
from connectors.mail.headers import Address, Headers
from topics.records import StatedFact
from topics.records.source_events import Scalar

MAX_RECIPIENT_FACTS = 10
"""A mail to more people is a circular: who got it says little, and each fact costs a row."""
MAX_FILE_FACTS = 5

_TEXT_FACTS = {"list-id": "list_id", "auto-submitted": "auto_submitted", "precedence": "precedence"}


def rule_facts(headers: Headers, body: Body, self_ids: frozenset[str]) -> dict[str, Scalar]:
    """from, to, cc, list_id, auto_submitted, precedence, labels, is_from_me, has_calendar_part, is_bounce; absent if unknown."""
    facts: dict[str, Scalar] = {"has_calendar_part": body.has_calendar, "is_bounce": is_bounce(headers, body)}
    sender = _addresses(headers, "from")
    if sender:
        facts["from"] = sender[0]
    for name in ("to", "cc"):
        if name in headers:
            facts[name] = _addresses(headers, name)
    facts |= {fact: headers.text(name) for name, fact in _TEXT_FACTS.items() if name in headers}
    if "x-gmail-labels" in headers:
        facts["labels"] = tuple(label.strip() for label in headers.text("x-gmail-labels").split(",") if label.strip())
    if self_ids and sender:
        facts["is_from_me"] = sender[0].lower() in self_ids
    return facts


def is_bounce(headers: Headers, body: Body) -> bool:
    sender = (_addresses(headers, "from") or ("",))[0].lower()
    return body.is_report or sender.startswith("mailer-daemon@") or headers.text("return-path") == "<>"


def is_automatic(headers: Headers, sender: Address | None) -> bool:
    """A program wrote it: it says so (RFC 3834), or nobody can answer it."""
    says = headers.text("auto-submitted").lower()
    local = sender.address.partition("@")[0].lower().replace("-", "").replace("_", "") if sender else ""
    return says not in ("", "no") or local in (
        "noreply",
        "donotreply",
        "mailerdaemon",
        "postmaster",
        "bounce",
        "bounces",
    )


def stated_facts(headers: Headers, body: Body, sent_at: datetime) -> tuple[StatedFact, ...]:
    """Who wrote to whom, the sender's address, the reply link and the attached files; a dozen at most."""
    sender = next((person for person in headers.addresses("from") if person.address), None)
    if sender is None:
        return ()
    facts: list[StatedFact] = []
    day = sent_at.date().isoformat()

    def state(subject: tuple[str, str], relation: str, obj: tuple[str, str], description: str) -> None:
        facts.append(
            StatedFact(
                subject=subject[0],
                subject_type=subject[1],
                relation=relation,
                object=obj[0],
                object_type=obj[1],
                description=description,
                valid_at=sent_at,
            )
        )

    me = (sender.address, "email_address")
    if sender.name:
        claim = f"{sender.name} is the name that mail from {sender.address} gave on {day}"
        state((sender.name, "person"), "has_address", me, claim)
    recipients = [
        to for to in headers.addresses("to") + headers.addresses("cc") if to.address and to.address != sender.address
    ]
    for to in recipients[:MAX_RECIPIENT_FACTS] if len(recipients) <= 3 * MAX_RECIPIENT_FACTS else ():
        state(me, "wrote_to", (to.address, "email_address"), f"{sender.address} wrote to {to.address} on {day}")
    mine, parent = headers.message_id(), (headers.ids("in-reply-to") or ("",))[0]
    if mine and parent and mine != parent:
        state(
            (f"mail {mine}", "message"),
            "reply_to",
            (f"mail {parent}", "message"),
            f"The mail {mine} answers the mail {parent}",
        )
    for file in [file for file in body.attachments if not file.name.startswith("part-")][:MAX_FILE_FACTS]:
        state(me, "sent_file", (file.name, "file"), f"{sender.address} sent the file {file.name} on {day}")
    return tuple(facts)


def _addresses(headers: Headers, name: str) -> tuple[str, ...]:
    return tuple(person.address for person in headers.addresses(name) if person.address)
