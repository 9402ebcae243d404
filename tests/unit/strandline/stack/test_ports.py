"""Ports: free ones, and who holds the others."""

import os
import socket
from collections.abc import Iterator

import pytest

from strandline.stack import ports


@pytest.fixture
def held() -> Iterator[int]:
    number = ports.choose(0, prefer_standard=False, taken=())
    with socket.create_server(("127.0.0.1", number)):
        yield number


def test_a_port_somebody_listens_on_is_not_free(held: int) -> None:
    assert not ports.is_free(held)


def test_the_standard_port_is_taken_where_it_is_wanted_and_free(held: int) -> None:
    free = ports.choose(0, prefer_standard=False, taken=())
    assert ports.choose(free, prefer_standard=True, taken=()) == free
    assert ports.choose(free, prefer_standard=True, taken=(free,)) != free
    assert ports.choose(held, prefer_standard=True, taken=()) != held


def test_a_chosen_port_is_outside_what_the_system_gives_to_outgoing_connections() -> None:
    assert all(20_000 <= ports.choose(0, prefer_standard=False, taken=()) < 32_000 for _ in range(50))


def test_an_error_can_name_who_listens(held: int) -> None:
    assert str(os.getpid()) in ports.owner(held)
