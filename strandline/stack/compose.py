"""docker-compose.yml, rendered from SERVICES: once with variables, for the checkout, and once filled in, for a stack's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from strandline.stack.render import container_environment
from strandline.stack.services import SERVICES, Service

HEAD = """\
# The services of Strandline for Docker. Made by `strandline stack compose` from strandline/stack/services.py; do not edit.
# It wants two secrets of your choice, for instance in the file .env beside it, where strandline reads them too:
#   STRANDLINE_NEO4J__PASSWORD (at least eight characters) and STRANDLINE_WEAVIATE__API_KEY.
# After `docker compose down --volumes` give Kafka a new KAFKA_CLUSTER_ID: it names the log.
"""

_VARIABLES = {
    "neo4j": "${STRANDLINE_NEO4J__PASSWORD:?choose a password}",
    "weaviate": "${STRANDLINE_WEAVIATE__API_KEY:?choose a key}",
    "kafka": "",
}
_CLUSTER_ID = "${KAFKA_CLUSTER_ID:-c3RyYW5kbGluZS1zdGFjaw}"

Document = dict[str, Any]


def document(values: Mapping[str, Mapping[str, str]]) -> Document:
    """The compose file as data. `values` by service: its published ports by name, secret and new_id, each a text or a `${variable}`."""
    return {
        "services": {name: _service(service, values[name]) for name, service in SERVICES.items()},
        "volumes": {f"{name}-data": {} for name in SERVICES},
    }


def with_variables() -> Document:
    """The document of the checkout: standard ports unless a variable like KAFKA_CLIENT_PORT says otherwise."""
    return document(
        {
            name: {
                port: f"${{{name.upper()}_{port.upper()}_PORT:-{row.standard}}}" for port, row in service.ports.items()
            }
            | {"secret": _VARIABLES[name], "new_id": _CLUSTER_ID}
            for name, service in SERVICES.items()
        }
    )


def text() -> str:
    """The file of the checkout."""
    return HEAD + yaml(with_variables())


def yaml(value: Document, indent: int = 0) -> str:
    """The document as YAML. Every text is quoted as JSON has it, which YAML reads the same."""
    lines = []
    for key, item in value.items():
        head = " " * indent + f"{key}:"
        if isinstance(item, dict) and item:
            lines.append(f"{head}\n{yaml(item, indent + 2)}")
        else:
            lines.append(f"{head} {json.dumps(item)}\n")
    return "".join(lines)


def _service(service: Service, values: Mapping[str, str]) -> Document:
    container = service.container
    published = [name for name, port in service.ports.items() if port.published]
    row: Document = {
        "image": container.image,
        # Kafka writes to itself under this name.
        "hostname": service.name,
        "environment": container_environment(service, values),
        "ports": [f"127.0.0.1:{values[name]}:{service.ports[name].standard}" for name in published],
        "volumes": [f"{service.name}-data:{container.data}"],
        "healthcheck": {
            "test": list(container.health),
            "interval": "5s",
            "timeout": "15s",
            "retries": int(service.start_timeout.total_seconds() / 5),
        },
        "mem_limit": container.memory,
        "stop_grace_period": f"{service.stop_grace.seconds}s",
        "restart": "unless-stopped",
    }
    if container.command:
        row["command"] = list(container.command)
    return row
