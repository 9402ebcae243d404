"""The metrics table: every row is an object of that name, and no row can hold a dataset."""

from __future__ import annotations

import re

from prometheus_client import Counter, Gauge, Histogram

from agents.metrics import METRICS, CommitterMetrics, Metrics, StageMetrics
from topics.errors import Outage

KINDS = {"counter": Counter, "gauge": Gauge, "histogram": Histogram}


def test_every_row_has_an_object_and_every_object_a_row() -> None:
    metrics = Metrics()
    made = [each for each in vars(metrics).values() if isinstance(each, (Counter, Gauge, Histogram))]
    objects = {next(iter(each.describe())).name: each for each in made}
    assert set(objects) == {row.name.removesuffix("_total") for row in METRICS}
    for row in METRICS:
        assert isinstance(objects[row.name.removesuffix("_total")], KINDS[row.kind])


def test_names_follow_the_rule_and_labels_name_nobody() -> None:
    for row in METRICS:
        assert re.fullmatch(r"strandline(_[a-z]+)+", row.name)
        assert row.name.endswith("_total") == (row.kind == "counter")
        assert set(row.labels) <= {"stage", "outcome", "reason", "code", "service", "committer"}


def test_what_is_counted_is_seen_in_a_scrape() -> None:
    metrics = Metrics()
    stage, committer = StageMetrics(metrics, "intake"), CommitterMetrics(metrics, "admit")
    stage.dead_lettered("refused")
    committer.committed(3, 0.1)
    committer.repeated(Outage("neo4j", "away"))
    committer.split()

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, labels)

    assert value("strandline_stage_records_total", stage="intake", outcome="dead_letter") == 1
    assert value("strandline_stage_dead_letters_total", stage="intake", code="refused") == 1
    assert value("strandline_committer_plans_total", committer="admit") == 3
    assert value("strandline_committer_retries_total", committer="admit", reason="outage") == 1
    assert value("strandline_committer_splits_total", committer="admit") == 1
