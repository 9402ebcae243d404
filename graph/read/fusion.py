"""Reciprocal rank fusion: several ranked lists as one, without comparing their scores."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

K = 60
"""Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet and individual rank learning methods, SIGIR 2009."""

Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Fused(Generic[Item]):
    """An item with its score, the sum of 1 / (60 + rank) over the lists it stands on, and their names, sorted."""

    item: Item
    score: float
    lists: tuple[str, ...]


def fuse(lists: Mapping[str, Sequence[Item]]) -> list[Fused[Item]]:
    """The best first. An item that a list has twice counts by its better rank; equal scores keep the order of first sight."""
    ranks: dict[Item, dict[str, int]] = {}
    for name, items in lists.items():
        for rank, item in enumerate(dict.fromkeys(items), start=1):
            ranks.setdefault(item, {})[name] = rank
    fused = [
        Fused(item, sum(1.0 / (K + rank) for rank in stood.values()), tuple(sorted(stood)))
        for item, stood in ranks.items()
    ]
    return sorted(fused, key=lambda one: -one.score)
