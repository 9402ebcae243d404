"""METRICS, the table of what a worker measures, and the objects made from it.

Names are `strandline_<noun>_<unit>[_total]`, base units. A dataset is never a label: there are too many, and their names are private.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from topics.errors import Outage, Retryable

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
_COUNTS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of METRICS."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    doc: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


METRICS: tuple[Metric, ...] = (
    Metric(
        "strandline_stage_records_total",
        "counter",
        "Records that left a stage: done, dead_letter or abandoned.",
        ("stage", "outcome"),
    ),
    Metric("strandline_stage_turn_records", "histogram", "Records in a turn.", ("stage",), _COUNTS),
    Metric(
        "strandline_stage_turn_seconds",
        "histogram",
        "From a turn's start until its sends are durable.",
        ("stage",),
        _SECONDS,
    ),
    Metric(
        "strandline_stage_hop_seconds",
        "histogram",
        "From a record's time on the log until the stage is done with it.",
        ("stage",),
        _SECONDS,
    ),
    Metric(
        "strandline_stage_retries_total",
        "counter",
        "Repeated turns: outage, retryable, bug, hole or split.",
        ("stage", "reason"),
    ),
    Metric(
        "strandline_stage_redelivered_records_total", "counter", "Records delivered again to this process.", ("stage",)
    ),
    Metric(
        "strandline_stage_dead_letters_total",
        "counter",
        "Records that failed for good, by error code.",
        ("stage", "code"),
    ),
    Metric(
        "strandline_stage_fenced_turns_total",
        "counter",
        "Turns given up because another worker owns the partition.",
        ("stage",),
    ),
    Metric("strandline_stage_pending_records", "gauge", "Records taken and not acknowledged.", ("stage",)),
    Metric(
        "strandline_stage_oldest_pending_seconds",
        "gauge",
        "Age of the oldest record that is not acknowledged.",
        ("stage",),
    ),
    Metric(
        "strandline_stage_holes",
        "gauge",
        "Lanes that stand still because a number before them is missing in the store.",
        ("stage",),
    ),
    Metric("strandline_stage_assigned_partitions", "gauge", "Partitions this process reads.", ("stage",)),
    Metric("strandline_breaker_open_services", "gauge", "1 while the service is away, else 0.", ("service",)),
    Metric("strandline_committer_groups_total", "counter", "Groups written.", ("committer",)),
    Metric("strandline_committer_plans_total", "counter", "Plans written.", ("committer",)),
    Metric("strandline_committer_splits_total", "counter", "Groups halved in search of a bad plan.", ("committer",)),
    Metric(
        "strandline_committer_retries_total",
        "counter",
        "Repeated groups: outage or retryable.",
        ("committer", "reason"),
    ),
    Metric("strandline_committer_group_seconds", "histogram", "One write of a group.", ("committer",), _SECONDS),
)

_ROWS = {metric.name: metric for metric in METRICS}


class Metrics:
    """The table as live objects, in a registry of its own: several workers of one test process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.records = self._counter("strandline_stage_records_total")
        self.turn_records = self._histogram("strandline_stage_turn_records")
        self.turn_seconds = self._histogram("strandline_stage_turn_seconds")
        self.hop_seconds = self._histogram("strandline_stage_hop_seconds")
        self.retries = self._counter("strandline_stage_retries_total")
        self.redelivered = self._counter("strandline_stage_redelivered_records_total")
        self.dead_letters = self._counter("strandline_stage_dead_letters_total")
        self.fenced = self._counter("strandline_stage_fenced_turns_total")
        self.pending = self._gauge("strandline_stage_pending_records")
        self.oldest_pending = self._gauge("strandline_stage_oldest_pending_seconds")
        self.holes = self._gauge("strandline_stage_holes")
        self.assigned = self._gauge("strandline_stage_assigned_partitions")
        self.breaker_open = self._gauge("strandline_breaker_open_services")
        self.groups = self._counter("strandline_committer_groups_total")
        self.plans = self._counter("strandline_committer_plans_total")
        self.splits = self._counter("strandline_committer_splits_total")
        self.group_retries = self._counter("strandline_committer_retries_total")
        self.group_seconds = self._histogram("strandline_committer_group_seconds")

    def _counter(self, name: str) -> Counter:
        row = _ROWS[name]
        return Counter(row.name, row.doc, row.labels, registry=self.registry)

    def _gauge(self, name: str) -> Gauge:
        row = _ROWS[name]
        return Gauge(row.name, row.doc, row.labels, registry=self.registry)

    def _histogram(self, name: str) -> Histogram:
        row = _ROWS[name]
        return Histogram(row.name, row.doc, row.labels, buckets=row.buckets, registry=self.registry)


class StageMetrics:
    """One stage's children, looked up once: they are touched for every record."""

    def __init__(self, metrics: Metrics, stage: str) -> None:
        self._metrics = metrics
        self._stage = stage
        self.done = metrics.records.labels(stage, "done")
        self.dead = metrics.records.labels(stage, "dead_letter")
        self.abandoned = metrics.records.labels(stage, "abandoned")
        self.turn_records = metrics.turn_records.labels(stage)
        self.turn_seconds = metrics.turn_seconds.labels(stage)
        self.hop_seconds = metrics.hop_seconds.labels(stage)
        self.redelivered = metrics.redelivered.labels(stage)
        self.fenced = metrics.fenced.labels(stage)

    def retried(self, reason: str) -> None:
        self._metrics.retries.labels(self._stage, reason).inc()

    def dead_lettered(self, code: str) -> None:
        self.dead.inc()
        self._metrics.dead_letters.labels(self._stage, code).inc()


class CommitterMetrics:
    """A CommitObserver that counts."""

    def __init__(self, metrics: Metrics, committer: str) -> None:
        self._groups = metrics.groups.labels(committer)
        self._plans = metrics.plans.labels(committer)
        self._splits = metrics.splits.labels(committer)
        self._seconds = metrics.group_seconds.labels(committer)
        self._retries = {reason: metrics.group_retries.labels(committer, reason) for reason in ("outage", "retryable")}

    def committed(self, plans: int, seconds: float) -> None:
        self._groups.inc()
        self._plans.inc(plans)
        self._seconds.observe(seconds)

    def repeated(self, error: Retryable) -> None:
        self._retries["outage" if isinstance(error, Outage) else "retryable"].inc()

    def split(self) -> None:
        self._splits.inc()
