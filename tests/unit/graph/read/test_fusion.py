"""Reciprocal rank fusion, by hand and by law."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.read.fusion import fuse

lists = st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(0, 9), max_size=8, unique=True))


def test_scores_are_sums_of_reciprocal_ranks_from_sixty_on() -> None:
    fused = fuse({"words": ["x", "y"], "vector": ["y", "z"]})
    assert [(one.item, one.lists) for one in fused] == [
        ("y", ("vector", "words")),
        ("x", ("words",)),
        ("z", ("vector",)),
    ]
    assert [one.score for one in fused] == pytest.approx([1 / 62 + 1 / 61, 1 / 61, 1 / 62])


def test_an_item_that_a_list_has_twice_counts_by_its_better_rank() -> None:
    assert fuse({"words": ["x", "y", "x"]})[0].score == pytest.approx(1 / 61)


@given(lists)
def test_every_item_comes_once_best_first(given_lists: dict[str, list[int]]) -> None:
    fused = fuse(given_lists)
    assert sorted(one.item for one in fused) == sorted({item for items in given_lists.values() for item in items})
    assert [one.score for one in fused] == sorted((one.score for one in fused), reverse=True)


@given(lists, st.integers(0, 9))
def test_first_in_every_list_is_first_of_all(given_lists: dict[str, list[int]], item: int) -> None:
    led = {name: [item, *(other for other in items if other != item)] for name, items in given_lists.items()}
    if led:
        assert fuse(led)[0].item == item
