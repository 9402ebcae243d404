"""Where Weaviate is, and the two ways to it: its client for the schema, its gRPC service for everything that is frequent.

The client binds a batch to one tenant and repeats an unavailable call for half a minute before it says so. The service itself
(`weaviate.v1.Weaviate`, whose stubs the client ships) takes objects of many tenants in one request and fails at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import grpc  # type: ignore[import-untyped]
import weaviate
from weaviate.auth import AuthApiKey
from weaviate.config import AdditionalConfig, Timeout
from weaviate.connect import ConnectionParams
from weaviate.proto.v1 import batch_pb2, search_get_pb2, weaviate_pb2_grpc

from graph.weaviate.errors import translated
from topics.errors import Refused

DEADLINE = timedelta(seconds=10)
"""Of one request. A server that is frozen sends no error."""

MAX_MESSAGE_BYTES = 100_000_000
"""What Weaviate takes in one message by default is a little more."""


@dataclass(frozen=True, slots=True)
class Server:
    """The address of a Weaviate."""

    host: str
    http_port: int
    grpc_port: int
    secure: bool = False
    api_key: str = field(default="", repr=False)

    @staticmethod
    def at(http_url: str, grpc_port: int, api_key: str = "") -> Server:
        """From `http://host:port`; Refused if it is no such address."""
        url = urlsplit(http_url)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise Refused(f"no address of a Weaviate: {http_url!r}; write http://host:port", field="weaviate.http_url")
        secure = url.scheme == "https"
        return Server(url.hostname, url.port or (443 if secure else 80), grpc_port, secure, api_key)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[weaviate.WeaviateAsyncClient]:
        """The vendor's client, connected; closed also when it could not connect, which its own `async with` forgets. Raises Outage."""
        params = ConnectionParams.from_params(
            http_host=self.host,
            http_port=self.http_port,
            http_secure=self.secure,
            grpc_host=self.host,
            grpc_port=self.grpc_port,
            grpc_secure=self.secure,
        )
        client = weaviate.WeaviateAsyncClient(
            params,
            auth_client_secret=AuthApiKey(self.api_key) if self.api_key else None,
            # Its checks would ask a package index on the internet whether the client is the latest.
            skip_init_checks=True,
            additional_config=AdditionalConfig(timeout=Timeout(init=5, query=30, insert=30)),
        )
        try:
            with translated("connect"):
                await client.connect()
            yield client
        finally:
            await client.close()


class Wire:
    """The service's calls that are frequent. Connects when first used, and again by itself after an outage; close it."""

    def __init__(self, server: Server, *, deadline: timedelta = DEADLINE) -> None:
        self._server = server
        self._deadline = deadline
        self._metadata = (("authorization", f"Bearer {server.api_key}"),) if server.api_key else None
        self._channel: Any = None
        self._stub: Any = None

    async def write(self, request: batch_pb2.BatchObjectsRequest) -> batch_pb2.BatchObjectsReply:
        """Raises Outage, Retryable or Permanent for the whole; errors of single objects are in the reply."""
        with translated("write rows"):
            reply: batch_pb2.BatchObjectsReply = await self._connected().BatchObjects(
                request, timeout=self._deadline.total_seconds(), metadata=self._metadata
            )
        return reply

    async def search(self, request: search_get_pb2.SearchRequest) -> search_get_pb2.SearchReply:
        """Errors as `write`; UnknownTenant for a dataset that has no row."""
        with translated("search"):
            reply: search_get_pb2.SearchReply = await self._connected().Search(
                request, timeout=self._deadline.total_seconds(), metadata=self._metadata
            )
        return reply

    async def close(self) -> None:
        if self._channel is not None:
            await self._channel.close()
            self._channel = self._stub = None

    def _connected(self) -> Any:
        """A channel belongs to the event loop it was made in, so it is made late."""
        if self._stub is None:
            target = f"{self._server.host}:{self._server.grpc_port}"
            options = [
                ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
                ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
                # Else a restarted server is found only after the backoff has grown to minutes.
                ("grpc.initial_reconnect_backoff_ms", 100),
                ("grpc.max_reconnect_backoff_ms", 1000),
                # A proxy of the environment is for the web, not for a service of ours.
                ("grpc.enable_http_proxy", 0),
            ]
            if self._server.secure:
                self._channel = grpc.aio.secure_channel(target, grpc.ssl_channel_credentials(), options=options)
            else:
                self._channel = grpc.aio.insecure_channel(target, options=options)
            self._stub = weaviate_pb2_grpc.WeaviateStub(self._channel)  # type: ignore[no-untyped-call]
        return self._stub
