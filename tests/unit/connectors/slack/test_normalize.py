from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.base import ReadOptions
from connectors.slack.normalize import BOOKKEEPING
from connectors.slack.payloads import instant_of, read_json
from tests.unit.connectors.reading import stated
from tests.unit.connectors.slack.workspace import event, message, outcome, reason
from topics.records import SourceEvent

EDITED = {"user": "U1", "ts": "1772445700.000000"}


def changed(new: dict[str, Any], old: dict[str, Any] | None, **fields: Any) -> dict[str, Any]:
    outer = {
        "type": "message",
        "subtype": "message_changed",
        "channel": "C1",
        "ts": "1772445800.000300",
        "message": new,
    }
    return outer | ({"previous_message": old} if old else {}) | fields


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("<@U1|ann> and <@U1>", "Ann Lee and Ann Lee"),
        ("<@U9|zoe> and <@U9>", "zoe and U9"),
        ("see <#C1> and <#C9|old-name> and <#C8>", "see #general and #old-name and #C8"),
        ("<!here> <!channel> <!everyone|everyone>", "@here @channel @everyone"),
        ("<!subteam^S1|@ops> <!subteam^S2>", "@ops @S2"),
        ("<!date^1772445600^{date_num}^https://x.org|2 March>", "2 March"),
        ("<!date^1772445600^{date_num}>", "2026-03-02 10:00 UTC"),
        ("<https://x.org/a?b=1&amp;c=2|the page> <https://x.org>", "the page (https://x.org/a?b=1&c=2) https://x.org"),
        ("<mailto:a@b.c|a@b.c>", "a@b.c"),
        ("1 &lt; 2 &amp;&amp; &amp;lt; &lt;@U1&gt;", "1 < 2 && &lt; <@U1>"),
        ("```x = <not a mark\n>```", "```x = <not a mark\n>```"),
        ("a <> b <@> c <!> d", "a <> b  c @ d"),
    ],
)
def test_markup_becomes_plain_text(raw: str, text: str) -> None:
    assert event(message(raw)).text == text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        (
            {
                "blocks": [
                    {
                        "type": "section",
                        "text": {"type": "mrkdwn", "text": "Deployed <@U2>"},
                        "fields": [{"text": "ok"}],
                    }
                ]
            },
            "Deployed Bob Stone\nok",
        ),
        (
            {
                "blocks": [
                    {
                        "type": "rich_text",
                        "elements": [
                            {
                                "type": "rich_text_section",
                                "elements": [{"type": "text", "text": "Hi "}, {"type": "user", "user_id": "U2"}],
                            },
                            {
                                "type": "rich_text_list",
                                "elements": [
                                    {
                                        "type": "rich_text_section",
                                        "elements": [{"type": "link", "url": "https://x.org", "text": "x"}],
                                    }
                                ],
                            },
                        ],
                    }
                ]
            },
            "Hi Bob Stone\n- x (https://x.org)",
        ),
        (
            {
                "attachments": [
                    {
                        "fallback": "F",
                        "title": "Build 7",
                        "text": "failed",
                        "fields": [{"title": "Who", "value": "<@U1>"}],
                    }
                ]
            },
            "Build 7\nfailed\nWho: Ann Lee",
        ),
        ({"attachments": [{"fallback": "only this"}]}, "only this"),
        (
            {"attachments": [{"blocks": [{"type": "header", "text": {"type": "plain_text", "text": "In blocks"}}]}]},
            "In blocks",
        ),
        (
            {"files": [{"id": "F1", "name": "plan.pdf"}, {"id": "F2", "mode": "tombstone"}]},
            "Files: plan.pdf, a file that is gone",
        ),
    ],
)
def test_without_text_the_blocks_then_attachments_then_files_speak(fields: dict[str, Any], text: str) -> None:
    assert event(message("", **fields)).text == text
    assert event(message("Own words.", **fields)).text == "Own words."


def test_a_message_without_anything_is_skipped() -> None:
    assert reason(message("  ")) == "empty"


def test_times_are_decimals_to_the_microsecond() -> None:
    assert instant_of("1772445600.000100") == datetime(2026, 3, 2, 10, 0, 0, 100, tzinfo=UTC)
    assert event(read_json(b'{"ts": 1772445600.000100, "text": "x", "channel": "C1"}')).version == "1772445600.000100"
    assert [instant_of(bad) for bad in ("", "x", "-1", "1e9", "99999999999", "1.2.3", "NaN")] == [None] * 7


@pytest.mark.parametrize("subtype", sorted(BOOKKEEPING))
def test_bookkeeping_is_never_an_episode(subtype: str) -> None:
    assert reason(message("<@U1> has joined", subtype=subtype)) == "bookkeeping"


def test_an_edit_is_the_same_object_in_a_higher_version() -> None:
    first = event(message("Monday."))
    second = event(changed(message("Tuesday.", edited=EDITED), message("Monday.")))
    assert second.object_id == first.object_id == "T1/C1/1772445600.000100"
    assert (first.version, second.version) == ("1772445600.000100", "1772445700.000000")
    assert second.text == "Tuesday."
    assert second.occurred_at == first.occurred_at


def test_an_edit_seen_live_and_in_an_export_is_one_event() -> None:
    new = message("Tuesday.", edited=EDITED)
    assert event(changed(new, message("Monday."))).event_id == event(new).event_id


def test_an_edit_without_edited_takes_the_events_time() -> None:
    assert event(changed(message("Tuesday."), message("Monday."))).version == "1772445800.000300"
    assert (
        event(changed(message("Three.", edited=EDITED), message("Two.", edited=EDITED))).version == "1772445800.000300"
    )
    assert event(changed(message("Tuesday."), None, event_ts="1772445900.000000")).version == "1772445900.000000"


@pytest.mark.parametrize(
    "added",
    [
        {"attachments": [{"from_url": "https://x.org", "text": "a preview"}]},
        {"attachments": [{"original_url": "https://x.org", "title": "t"}], "edited": EDITED},
        {"reply_count": 3, "latest_reply": "1772445900.000000"},
        {"blocks": [{"type": "rich_text", "block_id": "new", "elements": []}]},
    ],
)
def test_a_preview_or_a_count_is_no_new_episode(added: dict[str, Any]) -> None:
    old = message("See <https://x.org>", blocks=[{"type": "rich_text", "block_id": "old", "elements": []}])
    assert reason(changed(old | added, old)) == "unchanged"


@pytest.mark.parametrize(
    "added", [{"text": "Other."}, {"files": [{"id": "F1", "name": "a"}]}, {"attachments": [{"text": "own"}]}]
)
def test_new_text_file_or_own_attachment_is_an_edit(added: dict[str, Any]) -> None:
    assert event(changed(message() | added, message())).change == "upsert"


def test_a_change_by_a_bot_without_user_has_the_bot_as_author() -> None:
    new = {
        "ts": "1772445600.000100",
        "bot_id": "B1",
        "bot_profile": {"name": "Buildy"},
        "text": "Done.",
        "subtype": "bot_message",
    }
    found = event(changed(new, new | {"text": "Running."}))
    assert (found.actor.kind, found.actor.id, found.actor.name, found.facts["from_bot"]) == (
        "bot",
        "B1",
        "Buildy",
        True,
    )


def test_a_deletion_is_of_the_message_it_names() -> None:
    found = event(
        {
            "type": "message",
            "subtype": "message_deleted",
            "channel": "C1",
            "ts": "1772449999.000000",
            "deleted_ts": "1772445600.000100",
        }
    )
    assert (found.change, found.object_id, found.version, found.text) == (
        "delete",
        "T1/C1/1772445600.000100",
        "1772449999.000000",
        "",
    )
    assert found.stated_facts == ()
    assert (
        reason({"type": "message", "subtype": "message_deleted", "channel": "C1", "ts": "1772449999.000000"})
        == "malformed"
    )


def test_a_deleted_parent_of_a_thread_is_a_deletion_too() -> None:
    tombstone = {
        "ts": "1772445600.000100",
        "user": "USLACKBOT",
        "subtype": "tombstone",
        "text": "This message was deleted.",
        "thread_ts": "1772445600.000100",
    }
    live = event(changed(tombstone, message("Old.", thread_ts="1772445600.000100")))
    assert (live.change, live.object_id, live.version) == ("delete", "T1/C1/1772445600.000100", "1772445800.000300")
    assert event(tombstone | {"channel": "C1"}).change == "delete"


def test_replies_know_their_thread_and_a_parent_is_no_reply() -> None:
    reply = event(message("Yes.", thread_ts="1772440000.000000", parent_user_id="U2", subtype="thread_broadcast"))
    parent = event(message("Tea?", thread_ts="1772445600.000100"))
    assert (reply.object_kind, reply.thread_id, reply.parent_id) == (
        "thread_reply",
        "T1/C1/1772440000.000000",
        "T1/C1/1772440000.000000",
    )
    assert (parent.object_kind, parent.parent_id, parent.thread_id) == ("message", "", parent.object_id)
    assert stated(reply) == [("Ann Lee", "posted_in", "#general"), ("Ann Lee", "replied_to", "Bob Stone")]


def test_facts_are_absent_where_nothing_is_known() -> None:
    found = event(message("<@U2>, hello.", channel="C9"))
    assert "is_dm" not in found.facts
    assert "mentions_me" not in found.facts
    mine = event(
        message("<@U2>, hello.", channel_type="im", channel="D9"), ReadOptions("bob", self_ids=frozenset({"U2"}))
    )
    assert (mine.facts["is_dm"], mine.facts["mentions_me"], mine.facts["is_from_me"]) == (True, True, False)
    assert stated(found) == [("Ann Lee", "posted_in", "#C9"), ("Ann Lee", "mentions", "Bob Stone")]


def test_a_file_beside_a_text_is_named_and_the_text_counts() -> None:
    found = event(
        message(
            "The plan.",
            subtype="file_share",
            files=[{"id": "F1", "name": "plan.txt", "mimetype": "text/plain", "size": 4, "preview": "plan"}],
        )
    )
    assert (found.text, found.attachments[0].name, found.attachments[0].text, found.facts["has_files"]) == (
        "The plan.",
        "plan.txt",
        "plan",
        True,
    )


def test_a_message_by_nobody_is_by_a_ghost() -> None:
    found = event({"ts": "1772445600.000100", "text": "x", "channel": "C1"})
    assert (found.actor.kind, found.stated_facts) == ("ghost", ())


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"ts": "x"},
        {"ts": None},
        {"ts": "1.0", "text": "no channel"},
        {"ts": "99999999999", "text": "x", "channel": "C1"},
        {"subtype": "message_changed", "ts": "1.0"},
    ],
)
def test_what_slack_would_not_send_is_named_as_malformed(payload: dict[str, Any]) -> None:
    assert reason(payload) == "malformed"


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["1772445600.000100", "rich_text", "user", "<@U1>", "<!date^9^x>"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "text", "elements", "fields", "title", "user_id", "ts", "id", "blocks", "message", "name"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
FIELDS = [
    "user",
    "text",
    "blocks",
    "attachments",
    "files",
    "file",
    "comment",
    "thread_ts",
    "edited",
    "channel",
    "channel_type",
    "message",
    "previous_message",
]
FIELDS += ["deleted_ts", "bot_id", "bot_profile", "user_profile", "username", "event_ts", "parent_user_id"]


@settings(max_examples=400, deadline=None)
@given(
    st.dictionaries(st.sampled_from(FIELDS), values, max_size=8),
    st.sampled_from(["", "message_changed", "message_deleted", "tombstone", "bot_message", "file_comment"]),
)
def test_no_payload_makes_it_raise(fields: dict[str, Any], subtype: str) -> None:
    found = outcome({"ts": "1772445600.000100", "channel": "C1"} | fields | {"subtype": subtype})
    if isinstance(found, SourceEvent):
        assert SourceEvent.model_validate_json(found.model_dump_json()) == found
        assert found.text or found.change == "delete"
