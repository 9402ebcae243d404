"""Who is asking. Until credentials are configured there is one rule: whoever is on this machine is its owner, nobody else is served.

Three doors lead around "on this machine", and each is shut here: another address to listen on, a web page whose name was rebound to
127.0.0.1 (it sends its own Host), and a web page that posts across origins (it sends its Origin, or no JSON content type).
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

from aiohttp import web
from yarl import URL

from strandline.api.errors import Forbidden, Unidentified
from topics.errors import Refused

_OWN_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks. The seam for credentials: an edge asks `may_use` before anything is looked up."""

    name: str

    def may_use(self, user_id: str) -> bool:
        """May this one read and write that user's memory? The machine's owner may."""
        return True


OWNER: Final = Principal("owner")


def identify(request: web.BaseRequest) -> Principal:
    """Raises Unidentified for a peer that is not on this machine. Forwarded headers are never believed (features.md 423)."""
    if not is_loopback(request.remote or ""):
        raise Unidentified("only programs on this machine are served while no authentication is configured")
    return OWNER


def is_loopback(host: str) -> bool:
    """Is the address of this machine's own: 127.0.0.0/8, ::1 (also v4-mapped), localhost?"""
    if host == "localhost":
        return True
    try:
        address = ip_address(host.split("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback


def require_loopback(host: str) -> None:
    """Raises Refused for an address to listen on that others could reach."""
    if not is_loopback(host):
        raise Refused(
            f"STRANDLINE_API__HOST is {host}: without authentication the server listens on this machine only, since whoever reaches it "
            "can read and write every memory. Set it to 127.0.0.1, ::1 or localhost; reach it from elsewhere through a tunnel",
            field="STRANDLINE_API__HOST",
        )


def refuse_foreign_pages(request: web.BaseRequest) -> None:
    """Raises Forbidden for a request that a web page of somebody else made in a browser on this machine."""
    if _host(f"http://{request.headers.get('Host', '')}") not in _OWN_NAMES:
        raise Forbidden("the Host header is not this machine's: use http://127.0.0.1 or http://localhost with the port")
    origin = request.headers.get("Origin")
    if origin is not None and _host(origin) not in _OWN_NAMES:
        raise Forbidden("a page of another origin may not use this server")
    if request.method != "GET" and request.headers.get("Sec-Fetch-Site") == "cross-site":
        raise Forbidden("a page of another site may not use this server")


def _host(url: str) -> str:
    try:
        return URL(url).host or ""
    except ValueError:
        return ""
