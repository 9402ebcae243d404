from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.registry import CONNECTORS, detect_source, source_named
from connectors.slack.events import SlackEventsSource
from connectors.slack.export import SlackExportSource
from tests.unit.connectors.reading import OPTIONS, events, read_all, skipped
from tests.unit.connectors.slack.workspace import FILES, as_folder, as_zip, message
from topics.errors import Refused


def test_a_folder_and_a_zip_give_the_same_events(tmp_path: Path) -> None:
    paths = [
        as_folder(tmp_path / "f"),
        as_zip(tmp_path / "a.zip"),
        as_zip(tmp_path / "b.zip", top="export 1/"),
        as_folder(tmp_path / "g" / "export").parent,
    ]
    found = [read_all(detect_source(path), path) for path in paths]
    assert len({tuple((event.event_id, event.text) for event in events(items)) for items in found}) == 1
    assert [
        (event.text, event.container.name, event.container.kind) for event in events(found[0]) if event.container
    ] == [
        ("Psst.", "Ann Lee, Bob Stone", "dm"),
        ("Secret.", "board", "private_channel"),
        ("Hello.", "general", "channel"),
        ("Two.", "general", "channel"),
        ("We three.", "Ann Lee, Bob Stone, Buildy", "group_dm"),
        ("Three.", "general", "channel"),
    ]
    assert [(each.where, each.reason) for each in skipped(found[0])] == [
        ("general/2026-03-02.json#2", "malformed"),
        ("general/2026-03-02.json#3", "malformed"),
    ]


def test_an_export_and_the_live_events_name_the_same_objects(tmp_path: Path) -> None:
    exported = events(read_all(SlackExportSource(), as_folder(tmp_path / "f")))
    lines = tmp_path / "a.jsonl"
    lines.write_text(json.dumps({"type": "event_callback", "team_id": "T1", "event": message(ts="1772445600.000100")}))
    assert events(read_all(SlackEventsSource(), lines))[0].event_id in {event.event_id for event in exported}


def test_an_interrupted_import_goes_on_behind_any_item(tmp_path: Path) -> None:
    path = as_zip(tmp_path / "a.zip")
    items = read_all(SlackExportSource(), path)
    assert items[-1].done_bytes == SlackExportSource().size(path)
    for number, item in enumerate(items):
        rest = read_all(SlackExportSource(), path, replace(OPTIONS, after=item.cursor))
        assert [(each.cursor, each.done_bytes) for each in rest] == [
            (each.cursor, each.done_bytes) for each in items[number + 1 :]
        ]
    with pytest.raises(Refused, match="no cursor"):
        read_all(SlackExportSource(), path, replace(OPTIONS, after="rubbish"))


@pytest.mark.parametrize("content", [b"{", b"{}", b"\xff\xfe", b"[" * 100_000, b"null", b"[1, 2"])
def test_a_broken_day_costs_that_day_only(tmp_path: Path, content: bytes) -> None:
    path = as_zip(tmp_path / "a.zip", FILES | {"general/2026-03-02.json": content})
    items = read_all(SlackExportSource(), path)
    assert [each.reason for each in skipped(items)] == ["malformed"]
    assert len(events(items)) == 4


def test_broken_lists_of_names_leave_the_ids(tmp_path: Path) -> None:
    path = as_folder(
        tmp_path / "f", FILES | {"users.json": b"{", "channels.json": [7, {"id": None}, {"id": "C1", "name": ["x"]}]}
    )
    items = read_all(SlackExportSource(), path)
    assert skipped(items)[0].reason == "unreadable"
    assert {event.actor.name for event in events(items)} == {""}
    assert "U1" in {event.actor.label for event in events(items)}


def test_a_bomb_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = as_zip(tmp_path / "a.zip", FILES | {"general/2026-03-04.json": b"[" + b" " * 40_000_000 + b"]"})
    with pytest.raises(Refused, match="bomb"):
        read_all(SlackExportSource(), path)


def test_names_that_lead_out_are_left_out_and_nothing_is_written(tmp_path: Path) -> None:
    outside = ["../x/2026-03-02.json", "/etc/2026-03-02.json", "a/../../2026-03-02.json", "C:/2026-03-02.json"]
    (tmp_path / "in").mkdir()
    path = as_zip(tmp_path / "in" / "a.zip", FILES | {name: [message("Evil.")] for name in outside})
    items = read_all(SlackExportSource(), path)
    assert [each.reason for each in skipped(items)].count("unsafe_path") == 4
    assert "Evil." not in {event.text for event in events(items)}
    assert sorted(each.name for each in tmp_path.rglob("*")) == ["a.zip", "in"]


def test_a_damaged_member_costs_itself_only(tmp_path: Path) -> None:
    path = as_zip(tmp_path / "a.zip")
    with zipfile.ZipFile(path) as archive:
        at = archive.getinfo("board/2026-03-02.json").header_offset
    raw = bytearray(path.read_bytes())
    raw[at + 60 : at + 75] = b"\0" * 15
    path.write_bytes(raw)
    assert [each.reason for each in skipped(read_all(SlackExportSource(), path))][:1] == ["unreadable"]


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    outside = as_folder(tmp_path / "o", {"2026-03-09.json": [message("Outside.")]})
    inside = as_folder(tmp_path / "f")
    (inside / "general" / "2026-03-09.json").symlink_to(outside / "2026-03-09.json")
    (inside / "linked").symlink_to(outside)
    items = read_all(SlackExportSource(), inside)
    assert "Outside." not in {event.text for event in events(items)}
    assert "no_file" in {each.reason for each in skipped(items)}


def test_other_folders_and_zips_are_refused(tmp_path: Path) -> None:
    other = as_zip(tmp_path / "a.zip", {"readme.json": []})
    assert not SlackExportSource().detect(other)
    for path in (other, as_folder(tmp_path / "f", {"x.txt": b""}), tmp_path / "nowhere"):
        with pytest.raises(Refused, match="expected"):
            read_all(SlackExportSource(), path)
    cut = tmp_path / "cut.zip"
    cut.write_bytes(as_zip(tmp_path / "b.zip").read_bytes()[:-30])
    with pytest.raises(Refused, match="none of the kinds"):
        detect_source(cut)


def lines_of(path: Path) -> Path:
    rows: list[Any] = [
        {"type": "event_callback", "team_id": "T1", "event_id": "Ev1", "event": message("One, <@U5>.")},
        {"type": "user_change", "user": {"id": "U5", "profile": {"real_name": "Eve Park"}}},
        {"type": "channel_rename", "channel": {"id": "C1", "name": "all-hands"}},
        message("Two, <@U5>.", team="T1", ts="1772445601.000000"),
        {
            "type": "events_api",
            "envelope_id": "e",
            "payload": {"type": "event_callback", "team_id": "T1", "event": message("Three.", ts="1772445602.000000")},
        },
        {"type": "event_callback", "team_id": "T1", "event": {"type": "reaction_added"}},
        {"type": "url_verification", "challenge": "x"},
        [],
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows) + "\n\n{cut")
    return path


def test_lines_of_any_envelope_are_read_and_names_are_learnt_on_the_way(tmp_path: Path) -> None:
    path = lines_of(tmp_path / "a.jsonl")
    items = read_all(detect_source(path), path)
    assert [
        (event.text, event.container.name if event.container else "", event.delivery_id) for event in events(items)
    ] == [
        ("One, U5.", "", "Ev1"),
        ("Two, Eve Park.", "all-hands", ""),
        ("Three.", "all-hands", ""),
    ]
    assert len({event.object_id.rpartition("/")[0] for event in events(items)}) == 1
    assert [each.reason for each in skipped(items)] == ["not_a_message"] * 4 + ["malformed"] * 2
    assert items[-1].done_bytes == SlackEventsSource().size(path)


def test_lines_go_on_behind_any_item_with_the_same_names(tmp_path: Path) -> None:
    path = lines_of(tmp_path / "a.jsonl")
    items = read_all(SlackEventsSource(), path)
    for number, item in enumerate(items):
        assert read_all(SlackEventsSource(), path, replace(OPTIONS, after=item.cursor)) == items[number + 1 :]
    with pytest.raises(Refused, match="changed"):
        read_all(SlackEventsSource(), path, replace(OPTIONS, after="1-x"))


def test_a_line_without_end_is_skipped_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        json.dumps(message()).encode()
        + b"\n"
        + b'{"a":"'
        + b"x" * 10_000_000
        + b'"}\n'
        + json.dumps(message()).encode()
    )
    items = read_all(SlackEventsSource(), path)
    assert [each.reason for each in skipped(items)] == ["oversized"]
    assert len(events(items)) == 2


def test_the_table_names_every_source_and_loads_it() -> None:
    assert set(CONNECTORS) == {"mbox", "maildir", "slack_export", "slack_events"}
    assert all(source_named(name).name == name for name in CONNECTORS)
    with pytest.raises(Refused, match="choose one of"):
        source_named("fax")
