"""Is a service there? One question each, asked as a client would ask it, cheap enough to repeat ten times a second."""

from __future__ import annotations

import http.client
import socket
import struct
from collections.abc import Callable, Mapping

from strandline.stack.addresses import Addresses
from strandline.stack.errors import StackError

_TIMEOUT_SECONDS = 5.0
_API_VERSIONS = struct.pack(">hhih", 18, 0, 1, -1)
"""Kafka's ApiVersions request, version 0: key, version, correlation id, null client id. A broker answers it once it serves clients."""


def kafka(addresses: Addresses) -> bool:
    """Whether the broker answers ApiVersions without an error."""
    host, _, port = addresses.kafka_bootstrap.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_TIMEOUT_SECONDS) as connection:
            connection.sendall(struct.pack(">i", len(_API_VERSIONS)) + _API_VERSIONS)
            answer = connection.makefile("rb").read(10)
    except OSError:
        return False
    # Length, correlation id, error code.
    return len(answer) == 10 and struct.unpack(">iih", answer)[1:] == (1, 0)


def neo4j_server(addresses: Addresses) -> bool:
    """Whether the default database answers a query; raises StackError if the server refuses the password."""
    import neo4j  # Not at the top: it takes half a second, and every command imports this module.
    from neo4j.exceptions import AuthError, DriverError, Neo4jError

    host, _, port = addresses.neo4j_uri.rpartition("//")[2].rpartition(":")
    try:
        # A closed port is the usual case while it starts, and a driver is dear to make.
        socket.create_connection((host, int(port)), timeout=_TIMEOUT_SECONDS).close()
        credentials = (addresses.neo4j_user, addresses.neo4j_password) if addresses.neo4j_password else None
        with (
            neo4j.GraphDatabase.driver(
                addresses.neo4j_uri, auth=credentials, connection_timeout=_TIMEOUT_SECONDS, telemetry_disabled=True
            ) as driver,
            driver.session() as session,
        ):
            session.run("RETURN 1").consume()
    except AuthError as error:
        raise StackError(
            f"Neo4j at {addresses.neo4j_uri} refuses the password of user {addresses.neo4j_user}. "
            "If its data came from elsewhere, write its password into the file neo4j.password of the stack's folder."
        ) from error
    except (OSError, DriverError, Neo4jError):
        return False
    return True


def weaviate(addresses: Addresses) -> bool:
    """Whether it says that it is ready."""
    connection = http.client.HTTPConnection(
        addresses.weaviate_http_host, addresses.weaviate_http_port, timeout=_TIMEOUT_SECONDS
    )
    try:
        connection.request("GET", "/v1/.well-known/ready")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


PROBES: Mapping[str, Callable[[Addresses], bool]] = {"kafka": kafka, "neo4j": neo4j_server, "weaviate": weaviate}
"""By the service's name in SERVICES."""
