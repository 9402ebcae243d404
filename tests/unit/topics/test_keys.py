from __future__ import annotations

import pytest
from aiokafka.partitioner import DefaultPartitioner, murmur2
from hypothesis import given
from hypothesis import strategies as st

from topics.errors import Undecodable
from topics.keys import DatasetKey, derived_id, partition_of

# org.apache.kafka.common.utils.UtilsTest#testMurmur2, as signed 32-bit numbers.
JAVA_CLIENT = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}

names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
keys = st.builds(DatasetKey, names, names)


@pytest.mark.parametrize(("data", "java"), JAVA_CLIENT.items())
def test_murmur2_gives_the_values_of_the_java_client(data: bytes, java: int) -> None:
    assert murmur2(data) == java % 2**32


@pytest.mark.parametrize(("data", "java"), JAVA_CLIENT.items())
def test_the_sign_bit_is_cleared_before_the_partition_is_taken(data: bytes, java: int) -> None:
    assert partition_of(data, 12) == (java & 0x7FFFFFFF) % 12


@given(keys)
def test_our_partition_is_the_one_that_the_default_partitioner_takes(key: DatasetKey) -> None:
    partitions = list(range(12))
    assert partition_of(key.encode(), 12) == DefaultPartitioner()(key.encode(), partitions, partitions)


@given(keys)
def test_a_key_comes_back_from_its_bytes(key: DatasetKey) -> None:
    assert DatasetKey.decode(key.encode()) == key


@given(keys, keys)
def test_two_keys_have_the_same_bytes_only_if_they_are_the_same(one: DatasetKey, other: DatasetKey) -> None:
    assert (one.encode() == other.encode()) == (one == other)


# Where a separator would be ambiguous.
@given(st.lists(st.sampled_from('",[]\\ a'), min_size=2, max_size=8), st.data())
def test_moving_the_border_between_user_and_dataset_gives_another_key(letters: list[str], data: st.DataObject) -> None:
    text = "".join(letters)
    cuts = st.integers(0, len(text))
    first, second = data.draw(cuts), data.draw(cuts)
    one, other = DatasetKey(text[:first], text[first:]), DatasetKey(text[:second], text[second:])
    assert (one.encode() == other.encode()) == (first == second)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        b"",
        b"ada",
        b'"ab"',
        b'{"a":1,"b":2}',
        b'["a"]',
        b'["a","b","c"]',
        b'["a",1]',
        b'["a", "b"]',
        b'["\\u0061","b"]',
        b'["\\ud800","b"]',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_a_key_that_nobody_of_us_wrote_is_refused(raw: bytes | None) -> None:
    with pytest.raises(Undecodable, match="not \\[user, dataset\\]"):
        DatasetKey.decode(raw)


@given(st.lists(names, max_size=4), st.lists(names, max_size=4))
def test_ids_are_derived_from_their_parts_and_not_from_the_parts_joined(one: list[str], other: list[str]) -> None:
    assert (derived_id(*one) == derived_id(*other)) == (one == other)


def test_derived_ids_never_change() -> None:
    assert str(derived_id("dataset", "ada", "main")) == DatasetKey("ada").dataset_id
    assert DatasetKey("ada").dataset_id == "79d839d3-ba1e-5e82-a058-d8cf6c6c31ce"
