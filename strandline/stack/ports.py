"""Ports for a stack on this machine."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection

_FIRST, _LAST = 20_000, 32_000
"""Below the range from which Linux (32768) and macOS (49152) give ports to outgoing connections: a service that is restarted finds its port
free, and a client that calls a dead port cannot be connected to itself."""


def is_free(port: int) -> bool:
    """Whether a server could listen on it now. Connections of an earlier server that are still closing do not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            # Some servers listen on all addresses, so all must be free.
            probe.bind(("", port))
        except OSError:
            return False
    return True


def choose(standard: int, *, prefer_standard: bool, taken: Collection[int]) -> int:
    """A free port that is not in `taken`; the standard one if wanted and free."""
    if prefer_standard and standard not in taken and is_free(standard):
        return standard
    numbers = random.sample(range(_FIRST, _LAST), k=200)
    return next(number for number in numbers if number not in taken and is_free(number))


def owner(port: int) -> str:
    """Who listens there, for an error message; "another program" if the system does not tell."""
    import psutil  # Not at the top: it comes with the extra, and every command imports this module.

    try:
        for connection in psutil.net_connections(kind="tcp"):
            local = connection.laddr
            if connection.status == psutil.CONN_LISTEN and local and local.port == port and connection.pid:
                return f"{psutil.Process(connection.pid).name()} (process {connection.pid})"
    except psutil.Error:
        pass
    return "another program"
