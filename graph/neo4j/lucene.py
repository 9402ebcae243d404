"""People's words as a Lucene query: words only, nothing in them is an operator."""

from __future__ import annotations

import re
import unicodedata

from graph.neo4j.rows import dataset_token
from topics.keys import DatasetKey

MAX_WORDS = 64
"""Distinct words of a query that count. Lucene refuses a query of more than 1,024 clauses; a word makes one in each field."""

MAX_WORD_LENGTH = 255
"""Lucene's standard tokenizer cuts longer tokens, in the text as well."""

_SPECIAL = re.compile(r'([+\-&|!(){}\[\]^"~*?:\\/<>=])')


def word_query(key: DatasetKey, words: str) -> str | None:
    """Texts of the dataset that have any of the words, more of them better; None if there is no word in it."""
    found = [word for word in dict.fromkeys(words.lower().split()) if any(map(_counts, word[:MAX_WORD_LENGTH]))]
    if not found:
        return None
    clauses = " ".join(_SPECIAL.sub(r"\\\1", word[:MAX_WORD_LENGTH]) for word in found[:MAX_WORDS])
    # The dataset's token must be there and adds nothing to the score.
    return f"+dataset_token:{dataset_token(key)}^0 +({clauses})"


def _counts(character: str) -> bool:
    """Letters and digits make a word; a query of nothing else would match by the dataset's token alone."""
    return unicodedata.category(character)[0] in "LN"
