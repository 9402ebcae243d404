"""Text → token ids as BERT-uncased has them: clean, lower-case, strip accents, split, then the longest known piece first.

Own code, so that running needs no tokenizer library with a download client inside. After the reference BERT implementation's `BasicTokenizer` and
`WordpieceTokenizer`; vocab.txt is the one of sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0).
"""

from __future__ import annotations

import hashlib
import unicodedata
from functools import lru_cache
from importlib import resources

from topics.errors import Permanent

VOCAB_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
MAX_TOKENS = 256
"""What the model was trained on (its sentence_bert_config), with the two marks at the ends."""

MAX_WORD_CHARS = 100
"""A longer "word" is one unknown token, as in the reference."""

_UNKNOWN, _START, _END = "[UNK]", "[CLS]", "[SEP]"

_CJK = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)
"""Ideographs: each is a word of its own."""


def load_vocab() -> dict[str, int]:
    """Piece → id from the packaged file. Raises Permanent if the file is not the one this code was written for."""
    raw = resources.files("agents.models.local").joinpath("vocab.txt").read_bytes()
    if hashlib.sha256(raw).hexdigest() != VOCAB_SHA256:
        raise Permanent("agents/models/local/vocab.txt was changed (its SHA-256 differs); install Strandline again")
    return {piece: index for index, piece in enumerate(raw.decode("utf-8").rstrip("\n").split("\n"))}


class WordPiece:
    """Turns texts into ids. Safe for use from several threads."""

    def __init__(self, vocab: dict[str, int]) -> None:
        self._vocab = vocab
        self._start, self._end = vocab[_START], vocab[_END]
        self._pieces = lru_cache(maxsize=50_000)(self._split_word)

    def encode(self, text: str) -> list[int]:
        """Ids from [CLS] to [SEP], at most MAX_TOKENS; the rest of a longer text is not read."""
        ids = [self._start]
        # No word gives less than one token, so a huge text need not be read whole.
        for word in words(text[: MAX_TOKENS * MAX_WORD_CHARS]):
            ids.extend(self._pieces(word))
            if len(ids) >= MAX_TOKENS:
                break
        return [*ids[: MAX_TOKENS - 1], self._end]

    def _split_word(self, word: str) -> tuple[int, ...]:
        if len(word) > MAX_WORD_CHARS:
            return (self._vocab[_UNKNOWN],)
        ids: list[int] = []
        start = 0
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                found = self._vocab.get(prefix + word[start:end])
                if found is not None:
                    ids.append(found)
                    start = end
                    break
            else:
                return (self._vocab[_UNKNOWN],)
        return tuple(ids)


def words(text: str) -> list[str]:
    """The text's words and single punctuation marks, lower case, without accents."""
    plain = "".join(_clean(char) for char in text)
    stripped = (char for char in unicodedata.normalize("NFD", plain.lower()) if unicodedata.category(char) != "Mn")
    return "".join(f" {char} " if _is_punctuation(char) else char for char in stripped).split()


def _clean(char: str) -> str:
    code = ord(char)
    if code < 0x80:
        return " " if char in " \t\n\r" else "" if code < 0x20 or code == 0x7F else char
    category = unicodedata.category(char)
    # Not Cn: what Unicode has not assigned yet is kept, as the library that trained with the model does.
    if category in ("Cc", "Cf", "Co", "Cs") or code == 0xFFFD:
        return ""
    if category == "Zs":
        return " "
    return f" {char} " if any(low <= code <= high for low, high in _CJK) else char


def _is_punctuation(char: str) -> bool:
    code = ord(char)
    if code < 0x80:
        # Also symbols such as ^ and $, which Unicode does not call punctuation.
        return 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return unicodedata.category(char).startswith("P")
