"""Who owns a record and where it lies: the key (user, dataset), its partition, and every derived id.

Ids are UUIDv5 (RFC 9562 §5.5) of what they name, so any process that repeats a step writes the same rows again
instead of new ones.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID, uuid5

from aiokafka.partitioner import murmur2

from topics.errors import Undecodable

NAMESPACE = UUID("6d4f7f0c-52a3-5c1e-9a52-0f6f6f9f7a11")
"""Root of all derived ids. Changing it renames everything: never."""


_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
"""Made once: it is used several times a record."""

_KEYS_REMEMBERED = 4096


@dataclass(frozen=True, slots=True, order=True)
class DatasetKey:
    """The unit of order and isolation: Kafka key, Weaviate tenant and `dataset_id` of every graph node."""

    user_id: str
    dataset: str = "main"

    def encode(self) -> bytes:
        """The bytes on the log: a JSON array, so that no character of a name can be taken for the separator."""
        return _encoded(self.user_id, self.dataset)

    @staticmethod
    def decode(raw: bytes | None) -> DatasetKey:
        """Raises Undecodable for anything `encode` would not have written: another spelling of a key would lie on
        another partition."""
        key = _decoded(bytes(raw or b""))
        if key is None:
            raise Undecodable(f"the record's key is not [user, dataset]: {bytes(raw or b'')[:80]!r}")
        return key

    @property
    def dataset_id(self) -> str:
        """UUIDv5 of the key as text: what graph and index know the dataset by."""
        return _dataset_id(self.user_id, self.dataset)


@lru_cache(_KEYS_REMEMBERED)
def _encoded(user_id: str, dataset: str) -> bytes:
    return _JSON.encode([user_id, dataset]).encode()


@lru_cache(_KEYS_REMEMBERED)
def _decoded(raw: bytes) -> DatasetKey | None:
    try:
        user_id, dataset = json.loads(raw)
        if isinstance(user_id, str) and isinstance(dataset, str) and _encoded(user_id, dataset) == raw:
            return DatasetKey(user_id, dataset)
    except (ValueError, TypeError, RecursionError):
        pass
    return None


@lru_cache(_KEYS_REMEMBERED)
def _dataset_id(user_id: str, dataset: str) -> str:
    return str(derived_id("dataset", user_id, dataset))


def derived_id(*parts: str) -> UUID:
    """The same parts give the same id, everywhere and for ever; parts are not joined ambiguously."""
    return uuid5(NAMESPACE, _JSON.encode(parts))


def partition_of(key: bytes, partitions: int) -> int:
    """Kafka's default partitioner (murmur2, sign bit cleared), as the Java client and librdkafka's `murmur2_random`
    have it."""
    return int((murmur2(key) & 0x7FFFFFFF) % partitions)
