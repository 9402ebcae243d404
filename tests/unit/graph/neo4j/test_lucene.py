"""People's words become a query of words only."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from graph.neo4j.lucene import MAX_WORDS, word_query
from topics.keys import DatasetKey

KEY = DatasetKey("ada")


def clauses(words: str) -> str | None:
    query = word_query(KEY, words)
    if query is None:
        return None
    match = re.fullmatch(r"\+dataset_token:[0-9a-f]{32}\^0 \+\((.*)\)", query, re.DOTALL)
    assert match is not None
    return match[1]


def test_words_are_any_of_them_and_count_once() -> None:
    assert clauses("Okapi and OKAPI") == "okapi and"


def test_operators_and_signs_are_escaped() -> None:
    assert clauses("a:b AND c*") == r"a\:b and c\*"


def test_what_has_no_letter_or_digit_is_left_out() -> None:
    assert clauses("?! okapi …") == "okapi"
    assert clauses("?! …") is None


def test_long_questions_are_cut() -> None:
    query = clauses(" ".join(f"w{number}" for number in range(1000)))
    assert query is not None
    assert len(query.split()) == MAX_WORDS


@given(st.text(max_size=200))
def test_no_sign_of_the_query_language_stays_bare(words: str) -> None:
    query = clauses(words)
    assert query is None or not re.search(r'(?<!\\)[+\-&|!(){}\[\]^"~*?:/<>=]', query.replace("\\\\", ""))
