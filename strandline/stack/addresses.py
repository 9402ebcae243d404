"""Addresses: where the three services are, whoever started them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from strandline.stack.errors import StackError
from strandline.stack.services import NEO4J_USER

_KAFKA = "STRANDLINE_KAFKA__BOOTSTRAP"
_NEO4J_URI = "STRANDLINE_NEO4J__URI"
_NEO4J_USER = "STRANDLINE_NEO4J__USER"
_NEO4J_PASSWORD = "STRANDLINE_NEO4J__PASSWORD"  # noqa: S105 - a name, no secret
_WEAVIATE_HTTP = "STRANDLINE_WEAVIATE__HTTP_URL"
_WEAVIATE_GRPC = "STRANDLINE_WEAVIATE__GRPC_PORT"
_WEAVIATE_KEY = "STRANDLINE_WEAVIATE__API_KEY"
_NEEDED = (_KAFKA, _NEO4J_URI, _WEAVIATE_HTTP, _WEAVIATE_GRPC)


@dataclass(frozen=True)
class Addresses:
    """Where clients connect, and with what. Secrets are left out of `repr`, so they do not reach logs; "" where a server asks for none."""

    kafka_bootstrap: str
    """`host:port`"""
    neo4j_uri: str
    """`bolt://host:port`"""
    weaviate_http_host: str
    weaviate_http_port: int
    weaviate_grpc_port: int
    neo4j_user: str = NEO4J_USER
    neo4j_password: str = field(default="", repr=False)
    weaviate_api_key: str = field(default="", repr=False)

    @property
    def weaviate_http_url(self) -> str:
        return f"http://{self.weaviate_http_host}:{self.weaviate_http_port}"

    def as_environment(self) -> dict[str, str]:
        """The variables that `strandline` reads, secrets included."""
        variables = {
            _KAFKA: self.kafka_bootstrap,
            _NEO4J_URI: self.neo4j_uri,
            _NEO4J_USER: self.neo4j_user,
            _NEO4J_PASSWORD: self.neo4j_password,
            _WEAVIATE_HTTP: self.weaviate_http_url,
            _WEAVIATE_GRPC: str(self.weaviate_grpc_port),
            _WEAVIATE_KEY: self.weaviate_api_key,
        }
        return {name: value for name, value in variables.items() if value}

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> Addresses | None:
        """The reverse of `as_environment`. None if it names no service; raises StackError if it names some but not all."""
        present = [name for name in _NEEDED if environment.get(name)]
        if not present:
            return None
        missing = [name for name in _NEEDED if name not in present]
        if missing:
            raise StackError(f"{', '.join(present)} set, but {', '.join(missing)} missing: set all of them or none.")
        url = urlsplit(environment[_WEAVIATE_HTTP])
        if url.hostname is None:
            raise StackError(f"{_WEAVIATE_HTTP} is no address: write http://host:port.")
        return cls(
            kafka_bootstrap=environment[_KAFKA],
            neo4j_uri=environment[_NEO4J_URI],
            neo4j_user=environment.get(_NEO4J_USER) or NEO4J_USER,
            neo4j_password=environment.get(_NEO4J_PASSWORD, ""),
            weaviate_http_host=url.hostname,
            weaviate_http_port=url.port or 80,
            weaviate_grpc_port=int(environment[_WEAVIATE_GRPC]),
            weaviate_api_key=environment.get(_WEAVIATE_KEY, ""),
        )

    @classmethod
    def local(cls, ports: Mapping[str, Mapping[str, int]], secrets: Mapping[str, str]) -> Addresses:
        """The addresses of a stack on this machine, from its ports by service and name and its secrets by service."""
        return cls(
            kafka_bootstrap=f"127.0.0.1:{ports['kafka']['client']}",
            neo4j_uri=f"bolt://127.0.0.1:{ports['neo4j']['bolt']}",
            neo4j_password=secrets["neo4j"],
            weaviate_http_host="127.0.0.1",
            weaviate_http_port=ports["weaviate"]["http"],
            weaviate_grpc_port=ports["weaviate"]["grpc"],
            weaviate_api_key=secrets["weaviate"],
        )
