"""Weaviate's words as our errors; a service that is away is told at once."""

from __future__ import annotations

import socket
from uuid import uuid4

import numpy as np
import pytest

from graph.protocols import IndexRow
from graph.weaviate.connection import Server
from graph.weaviate.errors import UnknownTenant, of_message
from graph.weaviate.index import WeaviateIndex
from topics.errors import Outage, Permanent, Refused, Retryable, StrandlineError
from topics.keys import DatasetKey


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ('tenant not found: "x"', UnknownTenant),
        ("new node has a vector with length 3. Existing nodes 4: vector dimensions do not match", Permanent),
        ("invalid UUID length: 6", Permanent),
        ("class 'Fact' not present in schema", Outage),
        ("extract auth: unauthorized: invalid api key", Outage),
        ("leader not found", Retryable),
        ("memory pressure: cannot process batch", Retryable),
    ],
)
def test_a_message_says_whether_a_repeat_can_help(message: str, kind: type[StrandlineError]) -> None:
    assert type(of_message(message, "write a row")) is kind


def test_an_address_is_read_or_refused() -> None:
    server = Server.at("https://example.org", 443, "secret")
    assert (server.host, server.http_port, server.secure) == ("example.org", 443, True)
    assert "secret" not in repr(server)
    for wrong in ("example.org:80", "ftp://example.org", "http://"):
        with pytest.raises(Refused):
            Server.at(wrong, 1)


async def test_a_service_that_is_away_is_an_outage_at_once() -> None:
    with socket.socket() as http, socket.socket() as rpc:  # bound, and nobody listens
        http.bind(("127.0.0.1", 0))
        rpc.bind(("127.0.0.1", 0))
        server = Server("127.0.0.1", http.getsockname()[1], rpc.getsockname()[1])
        index = WeaviateIndex(server, model_id="m", dimension=2)
        row = IndexRow(DatasetKey("ada"), "Fact", str(uuid4()), "heron", np.array([1.0, 0.0], dtype=np.float32))
        for call in (index.put([row]), index.by_words(row.key, "Fact", "heron", 1), index.ensure()):
            with pytest.raises(Outage) as caught:
                await call
            assert caught.value.service == "weaviate"
        await index.close()
