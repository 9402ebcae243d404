"""The relations the memory knows by name: one table, from which the prompt's vocabulary, the rules and the closing of facts are made.

A relation that is not in the table is kept as it came and treated as many-valued: unknown meaning must never close a fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Relation:
    """What a relation means for facts that share its subject."""

    name: str
    template: str
    """The fact as a sentence, with `{subject}` and `{object}`; for facts that bring no sentence of their own."""
    single_valued: bool = False
    """At most one object of a subject is true at a time: a newer fact closes the older. Only such a relation may close anything."""
    closed_by_rules: bool = False
    """Also a fact from the local rules may close an older one. Rules misread more than models do, so few relations dare."""
    symmetric: bool = False
    """(a, b) says the same as (b, a)."""
    bookkeeping: bool = False
    """True of every message and seldom an answer: found, but put behind other facts."""
    aliases: tuple[str, ...] = ()
    """Other names that models use for the same; read as this one."""

    def sentence(self, subject: str, object: str) -> str:
        return self.template.format(subject=subject, object=object)


_ROWS: tuple[Relation, ...] = (
    Relation(
        "works_at",
        "{subject} works at {object}.",
        single_valued=True,
        closed_by_rules=True,
        aliases=("works_for", "employed_by", "employed_at", "employee_of"),
    ),
    Relation(
        "has_role",
        "{subject} has the role {object}.",
        single_valued=True,
        aliases=("role", "job_title", "title", "has_title", "has_position", "works_as", "position"),
    ),
    Relation(
        "reports_to",
        "{subject} reports to {object}.",
        single_valued=True,
        aliases=("managed_by", "has_manager", "supervised_by"),
    ),
    Relation(
        "lives_in",
        "{subject} lives in {object}.",
        single_valued=True,
        closed_by_rules=True,
        aliases=("resides_in", "lives_at", "moved_to", "relocated_to"),
    ),
    Relation(
        "located_in",
        "{subject} is in {object}.",
        single_valued=True,
        aliases=("located_at", "headquartered_in", "situated_in"),
    ),
    Relation(
        "scheduled",
        "{subject} is scheduled for {object}.",
        single_valued=True,
        closed_by_rules=True,
        aliases=("scheduled_for", "scheduled_on", "scheduled_at", "takes_place_on", "happens_on", "rescheduled_to"),
    ),
    Relation(
        "due_on",
        "{subject} is due on {object}.",
        single_valued=True,
        aliases=("due_by", "due", "has_deadline", "deadline"),
    ),
    Relation("assigned_to", "{subject} is assigned to {object}.", single_valued=True, aliases=("has_assignee",)),
    Relation(
        "has_status",
        "{subject} has the status {object}.",
        single_valued=True,
        aliases=("status", "state", "is_in_state"),
    ),
    Relation(
        "married_to",
        "{subject} is married to {object}.",
        single_valued=True,
        symmetric=True,
        aliases=("spouse_of", "spouse", "husband_of", "wife_of"),
    ),
    Relation(
        "family_of",
        "{subject} and {object} are family.",
        symmetric=True,
        aliases=("related_to", "sibling_of", "relative_of"),
    ),
    Relation("met_with", "{subject} met {object}.", symmetric=True, aliases=("met", "meets", "meets_with")),
    Relation("manages", "{subject} manages {object}.", aliases=("leads", "heads", "head_of", "manager_of")),
    Relation("member_of", "{subject} is a member of {object}.", aliases=("part_of_team",)),
    Relation("founded", "{subject} founded {object}.", aliases=("founder_of", "cofounded", "co_founded")),
    Relation("acquired", "{subject} acquired {object}.", aliases=("bought", "acquires")),
    Relation("owns", "{subject} owns {object}.", aliases=("owner_of",)),
    Relation("uses", "{subject} uses {object}.", aliases=("using", "used")),
    Relation("depends_on", "{subject} depends on {object}.", aliases=("relies_on", "blocked_by", "requires")),
    Relation("works_on", "{subject} works on {object}.", aliases=("working_on", "contributes_to")),
    Relation("attends", "{subject} attends {object}.", aliases=("attended", "participates_in", "attending")),
    Relation("travels_to", "{subject} travels to {object}.", aliases=("visits", "visited", "traveled_to", "flies_to")),
    Relation("likes", "{subject} likes {object}.", aliases=("loves", "enjoys", "prefers")),
    Relation("allergic_to", "{subject} is allergic to {object}.", aliases=("has_allergy_to",)),
    Relation("mentioned_with", "{subject} is mentioned with {object}.", symmetric=True, bookkeeping=True),
    Relation("has_address", "{subject} has the address {object}.", bookkeeping=True),
    Relation("wrote_to", "{subject} wrote to {object}.", bookkeeping=True),
    Relation("replied_to", "{subject} replied to {object}.", bookkeeping=True),
    Relation("posted_in", "{subject} posted in {object}.", bookkeeping=True),
    Relation("mentions", "{subject} mentions {object}.", bookkeeping=True),
)


def _table(rows: Iterable[Relation]) -> Mapping[str, Relation]:
    return MappingProxyType({row.name: row for row in rows})


RELATIONS: Mapping[str, Relation] = _table(_ROWS)
"""Name → relation. Aliases are not keys: ask `canonical` first."""

SENTENCE_RELATION = "mentioned_with"
"""Two names in one sentence, and nothing more known."""

_BY_ALIAS: Mapping[str, str] = MappingProxyType({alias: row.name for row in _ROWS for alias in row.aliases})

_NOT_WORD = re.compile(r"[\W_]+")


def canonical(name: str) -> str:
    """The stored form of a relation's name: lower case, underscores, known aliases resolved; "" if no letter or digit is left."""
    plain = _NOT_WORD.sub("_", name.strip().lower()).strip("_")
    for candidate in (plain, plain.removeprefix("is_")):
        if candidate in RELATIONS:
            return candidate
        if candidate in _BY_ALIAS:
            return _BY_ALIAS[candidate]
    return plain


def relation_of(name: str) -> Relation:
    """The row of a canonical name; for an unknown one a many-valued relation that closes nothing."""
    known = RELATIONS.get(name)
    if known is not None:
        return known
    return Relation(name, "{subject} " + name.replace("_", " ").replace("{", "").replace("}", "") + " {object}.")


def may_close(name: str, origin: str) -> bool:
    """Whether a fact of this relation and origin (stated, model, rules, sentence) may end an older fact of its subject."""
    relation = relation_of(name)
    if origin == "sentence":
        return False
    return relation.closed_by_rules if origin == "rules" else relation.single_valued
