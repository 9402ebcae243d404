"""Excerpts are word for word and show what was asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graph.read.excerpts import MAX_CHARS, excerpt


@given(st.text(max_size=300), st.text(max_size=20), st.integers(1, 100))
def test_an_excerpt_is_a_piece_of_the_text_at_the_place_it_says(text: str, words: str, size: int) -> None:
    start, part = excerpt(text, words, size)
    assert text[start : start + len(part)] == part
    assert len(part) <= max(size, 0)


def test_a_text_that_fits_is_shown_whole() -> None:
    assert excerpt("An okapi.", "zebra") == (0, "An okapi.")


def test_a_long_text_is_shown_around_the_longest_word_asked_for() -> None:
    text = "the rain " * 5000 + "an okapi came" + " and went" * 5000
    start, part = excerpt(text, "the OKAPI?")
    assert "okapi" in part
    assert start > 0
    assert text[start - 1] == " "
    assert len(part) == MAX_CHARS


def test_a_long_text_without_the_words_is_shown_from_its_beginning() -> None:
    assert excerpt("rain " * 5000, "okapi")[0] == 0


def test_a_text_without_a_space_is_no_trouble() -> None:
    start, part = excerpt("x" * 50_000 + " okapi " + "y" * 50_000, "okapi")
    assert "okapi" in part
    assert start > 0
