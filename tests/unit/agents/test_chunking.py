"""Long texts are cut so that nothing is lost and no word is split."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.chunking import CHUNK_CHARACTERS, OVERLAP_CHARACTERS, cut

PARAGRAPH = "Ada wrote to Ben about the launch. Ben answered on Monday.\n\n"


def test_a_text_of_one_piece_is_not_cut() -> None:
    assert cut("x" * CHUNK_CHARACTERS) == ()


@given(
    st.lists(st.sampled_from(["word ", "a", "line\n", "End. ", "para\n\n", "ü", "😀", "x" * 500]), min_size=1).map(
        lambda parts: "".join(parts) * (12_000 // max(1, len("".join(parts))))
    )
)
def test_the_pieces_cover_the_text_and_are_bounded(text: str) -> None:
    chunks = cut(text)
    if not chunks:
        assert len(text) <= CHUNK_CHARACTERS
        return
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert (chunks[0].start, chunks[-1].end) == (0, len(text))
    for chunk in chunks:
        assert 0 < chunk.end - chunk.start <= CHUNK_CHARACTERS
    for one, following in pairwise(chunks):
        assert one.start < following.start <= one.end <= following.end
        assert one.end - following.start <= OVERLAP_CHARACTERS


def test_a_piece_ends_with_a_paragraph_where_there_is_one() -> None:
    text = PARAGRAPH * 200
    for chunk in cut(text)[:-1]:
        assert text[: chunk.end].endswith("\n\n")


def test_no_word_is_split_where_there_are_words() -> None:
    text = "Reykjavik " * 3000
    for chunk in cut(text):
        assert text[chunk.start : chunk.end].split() == ["Reykjavik"] * len(text[chunk.start : chunk.end].split())


@pytest.mark.parametrize("size", [2**20, 2**20 - 1])
def test_the_largest_text_without_any_boundary_is_cut_hard(size: int) -> None:
    chunks = cut("x" * size)
    assert len(chunks) == pytest.approx(size / (CHUNK_CHARACTERS - OVERLAP_CHARACTERS), rel=0.01)
