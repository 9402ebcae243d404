"""HTTP_METRICS, the table of what the server measures, and the objects made from it. Rows as in agents/metrics.py."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from agents.metrics import Metric

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)

HTTP_METRICS: Final[tuple[Metric, ...]] = (
    Metric(
        "strandline_http_request_seconds",
        "histogram",
        "From a request's head to the end of its answer; streams of events are not in it.",
        ("method", "route", "status"),
        _SECONDS,
    ),
    Metric("strandline_http_open_requests", "gauge", "Requests that are being answered."),
    Metric("strandline_http_open_streams", "gauge", "Streams of events that are open."),
    Metric("strandline_http_stream_events_total", "counter", "Events written to streams."),
    Metric("strandline_http_slow_streams_total", "counter", "Streams ended because the reader did not keep up."),
    Metric("strandline_http_accepted_requests_total", "counter", "Texts accepted: durable on the log."),
)

_ROWS = {metric.name: metric for metric in HTTP_METRICS}


class HttpMetrics:
    """The table as live objects, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        seconds = _ROWS["strandline_http_request_seconds"]
        self.request_seconds = Histogram(
            seconds.name, seconds.doc, seconds.labels, buckets=seconds.buckets, registry=self.registry
        )
        self.open_requests = self._gauge("strandline_http_open_requests")
        self.open_streams = self._gauge("strandline_http_open_streams")
        self.stream_events = self._counter("strandline_http_stream_events_total")
        self.slow_streams = self._counter("strandline_http_slow_streams_total")
        self.accepted = self._counter("strandline_http_accepted_requests_total")

    def _gauge(self, name: str) -> Gauge:
        return Gauge(name, _ROWS[name].doc, registry=self.registry)

    def _counter(self, name: str) -> Counter:
        return Counter(name, _ROWS[name].doc, registry=self.registry)

    def page(self) -> bytes:
        """The Prometheus text format, version 1.0.0."""
        return generate_latest(self.registry)
