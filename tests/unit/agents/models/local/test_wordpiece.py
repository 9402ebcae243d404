"""Fixed ids come from the `tokenizers` library (0.23.3) with the model's own tokenizer.json."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.models.local.wordpiece import MAX_TOKENS, WordPiece, load_vocab, words
from topics.errors import Permanent


@pytest.fixture(scope="module")
def tokenizer() -> WordPiece:
    return WordPiece(load_vocab())


KNOWN_IDS = [
    ("", [101, 102]),
    ("Ada Lovelace works at Acme.", [101, 15262, 2293, 19217, 2573, 2012, 9353, 4168, 1012, 102]),
    ("\xc9migr\xe9 caf\xe9\u2014don't!", [101, 12495, 17603, 7668, 1517, 2123, 1005, 1056, 999, 102]),
    ("\u4f60\u597d world", [101, 100, 100, 2088, 102]),
    ("unaffable", [101, 14477, 20961, 3468, 102]),
    (" 3.14 $5^2 ~`|", [101, 1017, 1012, 2403, 1002, 1019, 1034, 1016, 1066, 1036, 1064, 102]),
    ("na\xefve co\xf6peration fa\xe7ade", [101, 15743, 6792, 8508, 102]),
    (
        "I'm re-reading e-mails: foo@bar.com https://x.y/z?q=1",
        [
            101,
            1045,
            1005,
            1049,
            2128,
            1011,
            3752,
            1041,
            1011,
            5653,
            2015,
            1024,
            29379,
            1030,
            3347,
            1012,
            4012,
            16770,
            1024,
            1013,
            1013,
            1060,
            1012,
            1061,
            1013,
            1062,
            1029,
            1053,
            1027,
            1015,
            102,
        ],
    ),
    ("\U0001f600 ok", [101, 100, 7929, 102]),
    ("\ufb01ne \xbd \u2460 \u2163", [101, 1984, 2638, 1092, 100, 100, 102]),
    ("\xc5NGSTR\xd6M \u0130stanbul \xdf", [101, 17076, 15687, 9960, 1096, 102]),
    ("tab\tnew\nline\r\nend\xa0nbsp\u3000wide", [101, 21628, 2047, 2240, 2203, 1050, 5910, 2361, 2898, 102]),
    (
        "\u041f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440",
        [101, 1194, 16856, 10325, 25529, 15290, 22919, 1191, 10325, 16856, 102],
    ),
    ("\u0645\u0631\u062d\u0628\u0627", [101, 1295, 17149, 29820, 29816, 25573, 102]),
    ("a\u0301e\u0308", [101, 29347, 102]),
    ("zero\u200bwidth\ufeffjoin", [101, 5717, 9148, 11927, 2232, 5558, 2378, 102]),
    ("electroencephalographically", [101, 16175, 10127, 21890, 21197, 20721, 3973, 102]),
    (
        "C++ & C#; f(x)=x**2",
        [101, 1039, 1009, 1009, 1004, 1039, 1001, 1025, 1042, 1006, 1060, 1007, 1027, 1060, 1008, 1008, 1016, 102],
    ),
    ("\u65e5\u672c\u8a9e\u30c6\u30b9\u30c8", [101, 1864, 1876, 1950, 1713, 30233, 30240, 102]),
    ("\U0001d54f math", [101, 100, 8785, 102]),
    ("under_score-dash\u2013en\u2014em", [101, 2104, 1035, 3556, 1011, 11454, 1516, 4372, 1517, 7861, 102]),
]


@pytest.mark.parametrize(("text", "ids"), KNOWN_IDS, ids=range(len(KNOWN_IDS)))
def test_ids_are_those_of_the_library_that_came_with_the_model(tokenizer: WordPiece, text: str, ids: list[int]) -> None:
    assert tokenizer.encode(text) == ids


def test_a_long_text_is_cut_to_what_the_model_was_trained_on(tokenizer: WordPiece) -> None:
    ids = tokenizer.encode("word " * 10_000)
    assert len(ids) == MAX_TOKENS
    assert (ids[0], ids[-1]) == (101, 102)


def test_a_word_past_the_limit_is_unknown(tokenizer: WordPiece) -> None:
    assert tokenizer.encode("x" * 101) == [101, 100, 102]


def test_words_lose_case_accents_and_control_characters() -> None:
    assert words("Émigré\u200b CAFÉ\x00s\tgo!") == ["emigre", "cafes", "go", "!"]


def test_a_text_cannot_write_the_models_own_marks(tokenizer: WordPiece) -> None:
    assert 102 not in tokenizer.encode("[SEP] [CLS]")[1:-1]


def test_a_changed_vocabulary_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n")
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
    with pytest.raises(Permanent, match="SHA-256"):
        load_vocab()
