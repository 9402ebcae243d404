"""Who is served: this machine, and no web page of somebody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from strandline.api.app import make_app
from strandline.api.call import Room
from strandline.api.errors import Unidentified
from strandline.api.identity import Principal, identify, is_loopback, require_loopback
from strandline.api.server import serving
from tests.doubles.server import Bench, running
from topics.errors import Refused


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with running() as bench:
        yield bench


@asynccontextmanager
async def served(app: web.Application) -> AsyncIterator[aiohttp.ClientSession]:
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        async with aiohttp.ClientSession(f"http://127.0.0.1:{runner.addresses[0][1]}") as http:
            yield http
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("192.168.1.5", False),
        ("::ffff:10.0.0.1", False),
        ("example.com", False),
    ],
)
def test_only_this_machines_own_addresses_are_loopback(host: str, own: bool) -> None:
    assert is_loopback(host) is own
    if own:
        require_loopback(host)
    else:
        with pytest.raises(Refused, match="without authentication"):
            require_loopback(host)


async def test_the_server_refuses_to_start_where_others_could_reach_it(bench: Bench) -> None:
    with pytest.raises(Refused, match="STRANDLINE_API__HOST"):
        async with serving(bench.memory, host="0.0.0.0"):
            pass


async def test_a_port_in_use_is_refused_with_a_way_out(bench: Bench) -> None:
    port = int(bench.url.rsplit(":", 1)[1])
    with pytest.raises(Refused, match=f"port {port}.*STRANDLINE_API__PORT"):
        async with serving(bench.memory, port=port):
            pass


def test_a_forwarded_header_does_not_make_a_stranger_local() -> None:
    class Elsewhere:
        def get_extra_info(self, name: str) -> object:
            return ("203.0.113.9", 4711) if name == "peername" else None

    request = make_mocked_request("GET", "/", {"X-Forwarded-For": "127.0.0.1"}, transport=Elsewhere())
    with pytest.raises(Unidentified):
        identify(request)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "10.0.0.1", "localhost.", ""]
)
@pytest.mark.parametrize("path", ["/v1/runs?user_id=ada", "/live", "/nowhere"])
async def test_a_rebound_name_is_forbidden_whatever_it_asks(bench: Bench, host: str, path: str) -> None:
    async with bench.http.get(path, headers={"Host": host}) as answer:
        assert (answer.status, (await answer.json())["code"]) == (403, "forbidden")


@pytest.mark.parametrize("host", ["localhost", "localhost:7878", "127.0.0.1:1", "[::1]:7878", "LOCALHOST"])
async def test_this_machines_names_are_served(bench: Bench, host: str) -> None:
    async with bench.http.get("/live", headers={"Host": host}) as answer:
        assert answer.status == 200


@pytest.mark.parametrize(
    "headers", [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
)
async def test_a_post_from_a_foreign_page_is_forbidden(bench: Bench, headers: dict[str, str]) -> None:
    async with bench.http.post("/v1/remember", json={"user_id": "ada", "text": "x"}, headers=headers) as answer:
        assert answer.status == 403
    assert bench.log.size == 0


async def test_a_preflight_of_a_browser_is_never_granted(bench: Bench) -> None:
    asks = {"Origin": "http://localhost:3000", "Access-Control-Request-Method": "POST"}
    async with bench.http.options("/v1/remember", headers=asks) as answer:
        assert answer.status == 405
        assert not [name for name in answer.headers if name.lower().startswith("access-control-")]


class Stranger(Principal):
    def may_use(self, user_id: str) -> bool:
        return False


async def test_permission_comes_before_existence(bench: Bench) -> None:
    """What exists and what does not look the same to one who may not ask."""
    app = make_app(bench.memory, bench.metrics, identify=lambda request: Stranger("stranger"))
    async with bench.http.post("/v1/remember", json={"user_id": "ada", "text": "x"}) as answer:
        run_id = (await answer.json())["run_id"]
    size = bench.log.size
    async with served(app) as http:
        bodies = []
        for one in (run_id, "00000000-0000-0000-0000-000000000000"):
            async with http.get(f"/v1/runs/{one}?user_id=ada") as answer:
                bodies.append((answer.status, await answer.read()))
        assert bodies[0] == bodies[1]
        assert bodies[0][0] == 403
        for path, sent in (("/v1/remember", {"text": "x"}), ("/v1/search", {"query": "x", "dataset": "unknown"})):
            async with http.post(path, json={"user_id": "ada"} | sent) as answer:
                assert answer.status == 403
    assert bench.log.size == size


async def test_bodies_beyond_the_room_for_them_are_told_to_come_again(bench: Bench) -> None:
    async with served(make_app(bench.memory, bench.metrics, room=Room(100))) as http:
        async with http.post("/v1/remember", json={"user_id": "ada", "text": "x" * 200}) as answer:
            assert answer.status == 503
            assert answer.headers["Retry-After"] == "1"
        for _ in range(5):  # the room is free again each time
            async with http.post("/v1/remember", json={"user_id": "ada", "text": "x" * 20}) as answer:
                assert answer.status == 202


async def test_an_unidentified_caller_learns_nothing_not_even_routes(bench: Bench) -> None:
    def nobody(request: web.BaseRequest) -> Principal:
        raise Unidentified("say who you are")

    async with served(make_app(bench.memory, bench.metrics, identify=nobody)) as http:
        for path in ("/v1/runs?user_id=ada", "/nowhere", "/docs"):
            async with http.get(path) as answer:
                assert answer.status == 401
