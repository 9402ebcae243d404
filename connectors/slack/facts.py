"""What a Slack message says without a model: facts for the rules, and facts for the graph. People are named by their workspace profile."""

from __future__ import annotations

from datetime import datetime

from connectors.slack.directory import Conversation, Directory
from connectors.slack.payloads import Message
from connectors.slack.text import mentioned
from topics.records import Actor, StatedFact
from topics.records.source_events import Scalar

MAX_MENTION_FACTS = 10


def rule_facts(
    message: Message, actor: Actor, conversation: Conversation, self_ids: frozenset[str]
) -> dict[str, Scalar]:
    """is_dm, is_mpim, channel, from_bot, subtype, has_files, is_reply; mentions_me and is_from_me if it is known who "me" is."""
    container = conversation.container
    facts: dict[str, Scalar] = {
        "channel": container.name or container.id,
        "from_bot": actor.kind == "bot",
        "has_files": bool(message.all_files),
        "is_reply": bool(message.thread_ts) and message.thread_ts != message.ts,
    }
    if container.kind:
        facts |= {"is_dm": container.is_dm, "is_mpim": container.kind == "group_dm"}
    if message.subtype:
        facts["subtype"] = message.subtype
    if self_ids:
        facts |= {"mentions_me": not self_ids.isdisjoint(mentioned(message)), "is_from_me": actor.is_self}
    return facts


def stated_facts(
    message: Message, actor: Actor, conversation: Conversation, names: Directory, at: datetime
) -> tuple[StatedFact, ...]:
    """Where the author posted (in a direct message: to whom he wrote), whom he answers, whom he mentions."""
    author = actor.label
    if not author:
        return ()
    day = at.date().isoformat()
    author_type = "bot" if actor.kind == "bot" else "person"

    def fact(relation: str, obj: str, object_type: str, words: str) -> StatedFact:
        return StatedFact(
            subject=author,
            subject_type=author_type,
            relation=relation,
            object=obj,
            object_type=object_type,
            description=f"{author} {words} {obj} on {day}",
            valid_at=at,
        )

    container = conversation.container
    if container.kind in ("dm", "group_dm"):
        others = [names.person_name(each) for each in conversation.members if each != actor.id]
        facts = [fact("wrote_to", each, "person", "wrote to") for each in others[:MAX_MENTION_FACTS]]
    else:
        facts = [fact("posted_in", f"#{container.name or container.id}", "channel", "posted in")]
    parent = message.parent_user_id if message.thread_ts != message.ts else ""
    if parent and parent != actor.id:
        facts.append(fact("replied_to", names.person_name(parent), "person", "replied to"))
    mentions = [each for each in mentioned(message) if each not in (actor.id, parent)]
    facts += [fact("mentions", names.person_name(each), "person", "mentioned") for each in mentions[:MAX_MENTION_FACTS]]
    return tuple(facts)
