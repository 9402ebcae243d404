"""The names of a workspace: people, channels, groups of people, by their ids. A name is what the profile says; the id is what counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from connectors.canonical import clean_line
from connectors.slack.payloads import Json
from topics.records import Container

KINDS = {"channels": "channel", "groups": "private_channel", "dms": "dm", "mpims": "group_dm"}
"""An export's list of conversations → `Container.kind`."""

TYPES = {"channel": "channel", "group": "private_channel", "im": "dm", "mpim": "group_dm"}
"""An event's `channel_type` → `Container.kind`."""


@dataclass(frozen=True, slots=True)
class Person:
    id: str
    name: str
    address: str = ""
    is_bot: bool = False
    team: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    container: Container
    members: tuple[str, ...] = ()


class Directory:
    """Grows while it is read; an unknown id has no name."""

    def __init__(self) -> None:
        self.people: dict[str, Person] = {}
        self.conversations: dict[str, Conversation] = {}
        self.groups: dict[str, str] = {}
        self.folders: dict[str, str] = {}
        """A conversation's id by its own name, which is its folder in an export."""

    @property
    def team(self) -> str:
        """The team that most people belong to (guests bring their own); "" if nobody names one."""
        teams = Counter(person.team for person in self.people.values() if person.team)
        return max(teams, key=lambda team: (teams[team], team), default="")

    def learn_person(self, user: Json) -> None:
        """From users.json, `user_change` or `team_join`."""
        profile = user.get("profile")
        profile = profile if isinstance(profile, dict) else {}
        names = (profile.get("real_name"), user.get("real_name"), profile.get("display_name"), user.get("name"))
        name = next((clean_line(each, 200) for each in names if isinstance(each, str) and each.strip()), "")
        key, team, address = (_text(user.get("id")), _text(user.get("team_id")), _text(profile.get("email")))
        if key:
            is_bot = user.get("is_bot") is True or key == "USLACKBOT"
            self.people[key] = Person(key, name, address, is_bot, team)

    def learn_conversation(self, channel: Json, kind: str) -> None:
        """From an export's lists, or `channel_created` and `channel_rename`."""
        key = _text(channel.get("id"))
        members = channel.get("members")
        ids = tuple(_text(each) for each in members if isinstance(each, str)) if isinstance(members, list) else ()
        names = ", ".join(self.person_name(each) for each in ids)
        name = names if kind in ("dm", "group_dm") and names else _text(channel.get("name"))
        if key:
            container = Container(id=key, name=name, kind=kind, private=kind != "channel", is_dm=kind == "dm")
            self.folders[_text(channel.get("name"))] = key
            self.conversations[key] = Conversation(container, ids)

    def learn_group(self, group: Json) -> None:
        key = _text(group.get("id"))
        if key:
            self.groups[key] = _text(group.get("handle")) or _text(group.get("name"))

    def person_name(self, key: str, fallback: str = "") -> str:
        """The profile's name, else the label of the mention, else the id."""
        person = self.people.get(key)
        return (person.name if person else "") or clean_line(fallback, 200).lstrip("@") or key

    def channel_name(self, key: str, fallback: str = "") -> str:
        known = self.conversations.get(key)
        return (known.container.name if known else "") or clean_line(fallback, 200).lstrip("#") or key

    def group_name(self, key: str, fallback: str = "") -> str:
        return self.groups.get(key) or clean_line(fallback, 200).lstrip("@") or key


def _text(value: object) -> str:
    return clean_line(value, 200) if isinstance(value, str) else ""
