"""The tables agree: stages, topics, committers, and the files they name."""

from __future__ import annotations

import importlib
from pathlib import Path

import agents.stages
from agents.committers import COMMITTERS
from agents.pipeline import STAGES
from topics.registry import TOPICS, topic

EDGES = {"api", "cli", "sdk"}
BY_HOST = {"remember.runs", "dead.letters"}
"""Every stage's host sends to these."""


def test_every_stage_file_has_a_row_and_every_row_a_file() -> None:
    folder = Path(agents.stages.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert files == {stage.name for stage in STAGES}


def test_every_stage_file_says_what_it_reads_sends_and_needs() -> None:
    for stage in STAGES:
        words = importlib.import_module(f"agents.stages.{stage.name}").__doc__ or ""
        assert words.startswith(f"{stage.name}: ")
        assert f"Reads   {stage.reads} ({topic(stage.reads).value.__name__})" in words
        for name in stage.sends:
            assert name in words
        assert "Needs   " in words


def test_stages_and_topics_name_each_other() -> None:
    for stage in STAGES:
        assert stage.name in topic(stage.reads).read_by
        for name in stage.sends:
            assert stage.name in topic(name).sent_by
    for spec in TOPICS:
        assert {reader for reader in spec.read_by if reader not in EDGES} <= {
            s.name for s in STAGES if s.reads == spec.name
        }
        if spec.name not in BY_HOST:
            senders = {s.name for s in STAGES if spec.name in s.sends}
            assert {sender for sender in spec.sent_by if sender not in EDGES} == senders


def test_a_path_leads_from_every_edge_to_the_index() -> None:
    reached, new = set(), {spec.name for spec in TOPICS if set(spec.sent_by) & EDGES and spec.name not in BY_HOST}
    while new:
        reached |= new
        new = {name for stage in STAGES if stage.reads in reached for name in stage.sends} - reached
    assert "graph.changes" in reached
    assert reached >= {spec.name for spec in TOPICS if spec.name not in BY_HOST}


def test_the_stages_whose_effect_is_numbered_are_fenced() -> None:
    assert {stage.name for stage in STAGES if stage.fenced} == {"intake", "writer"}
    assert {row.name for row in COMMITTERS.values() if row.per_dataset} == {"admit", "apply"}


def test_what_may_run_in_order_only_has_one_group_in_flight() -> None:
    assert all(row.in_flight == 1 for row in COMMITTERS.values() if row.name != "embed")
