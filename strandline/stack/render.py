"""What the table says, in the form each server reads it. Pure: text and dictionaries, no files."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping

from strandline.stack.services import NEO4J_USER, Service

_HASH_ROUNDS = 1024


def native_settings(service: Service, values: Mapping[str, str]) -> dict[str, str]:
    """All settings of a native server. `values` are its ports by name, secret, home, data and conf."""
    return _filled({**service.settings, **service.native}, values)


def container_environment(service: Service, values: Mapping[str, str]) -> dict[str, str]:
    """The variables of a service's container. `values` are its published ports by name, secret and new_id."""
    settings = _filled({**service.settings, **service.docker}, values)
    own = _filled(service.container.environment, values)
    return own | {container_variable(service, name): value for name, value in settings.items()}


def container_variable(service: Service, setting: str) -> str:
    """How the image spells a setting: `message.max.bytes` is `KAFKA_MESSAGE_MAX_BYTES`."""
    name = setting
    for old, new in service.container.escapes:
        name = name.replace(old, new)
    variable = service.container.variable.format(name=name)
    # Kafka's image knows its variables in capitals only, Neo4j's as the setting is written.
    return variable.upper() if service.name == "kafka" else variable


def properties(settings: Mapping[str, str]) -> str:
    """`name=value` lines, as Kafka and Neo4j read them; a backslash would be an escape."""
    return "".join(f"{name}={value.replace(chr(92), chr(92) * 2)}\n" for name, value in settings.items())


def neo4j_auth_file(password: str) -> str:
    """The line of `dbms/auth.ini` with which a fresh Neo4j takes its first user, as `neo4j-admin dbms set-initial-password` writes it.

    So there is no moment with a known password, and no process whose arguments show it. SHA-256 over salt and password, 1,024 rounds.
    """
    salt = secrets.token_bytes(32)
    digest = hashlib.sha256(salt + password.encode()).digest()
    for _ in range(_HASH_ROUNDS - 1):
        digest = hashlib.sha256(digest).digest()
    return f"{NEO4J_USER}:SHA-256,{digest.hex().upper()},{salt.hex().upper()},{_HASH_ROUNDS}:\n"


def _filled(templates: Mapping[str, str], values: Mapping[str, str]) -> dict[str, str]:
    return {name: template.format_map(values) for name, template in templates.items()}
