"""Every id that two parts must derive alike. The same step of the same record has the same id, so a repeat is
recognised everywhere."""

from __future__ import annotations

from uuid import UUID

from topics.keys import DatasetKey, derived_id


def run_id(key: DatasetKey, source_type: str, idempotency_key: str, request_hash: str) -> UUID:
    """A repeated request is the same run. The hash is in it, so a conflicting request under a used key is a run of
    its own (and rejected)."""
    return derived_id("run", key.user_id, key.dataset, source_type, idempotency_key, request_hash)


def artifact_id(key: DatasetKey, source_type: str, idempotency_key: str) -> UUID:
    """One text for each (user, dataset, source type, idempotency key)."""
    return derived_id("artifact", key.user_id, key.dataset, source_type, idempotency_key)


def chunk_id(artifact: UUID | str, index: int) -> UUID:
    """The index row of a piece of a text."""
    return derived_id("chunk", str(artifact), str(index))


def sent_id(topic: str, run: UUID | str) -> UUID:
    """`ce_id` of the one record that a run has on a stage topic."""
    return derived_id("sent", topic, str(run))


def run_event_id(run: UUID | str, stage: str, step: str) -> UUID:
    """`ce_id` of a run event; `step` is the run's state, or `started`."""
    return derived_id("run-event", str(run), stage, step)
