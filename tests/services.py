"""The real services for tests, from one fixture, and a stack of its own for a test that kills.

`services` takes what is there, in this order: addresses in the environment (STRANDLINE_KAFKA__BOOTSTRAP and the others); containers, if a Docker
engine answers; else a native stack in a temporary folder, built once and cached. All of a session share it: a test names its own topics,
datasets and collections.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import weaviate
from testcontainers.core.container import DockerContainer
from weaviate.auth import AuthApiKey
from weaviate.connect import ConnectionParams

from strandline.stack import SERVICES, Addresses, NativeStack, StackError
from strandline.stack import state as stack_state
from strandline.stack.docker import engine_answers
from strandline.stack.health import PROBES
from strandline.stack.render import container_environment
from strandline.stack.services import Service

Say = Callable[[str], None]


@pytest.fixture(scope="session")
def services(request: pytest.FixtureRequest) -> Iterator[Addresses]:
    """Where Kafka, Neo4j and Weaviate are; started if need be and stopped at the end."""
    say = _teller(request.config)
    with ExitStack() as stack:
        found = Addresses.of_environment(os.environ)
        if found is not None:
            say("from the environment")
        elif engine_answers():
            say("containers")
            found = stack.enter_context(_containers(say))
        else:
            say("native, in a temporary folder")
            found = stack.enter_context(native_stack(say)).up()
        yield found


@pytest.fixture
def own_stack(request: pytest.FixtureRequest) -> Iterator[NativeStack]:
    """A native stack that nobody shares, not started: `up()`, `start(name)`, `kill(name)`, `stop()`. Deleted afterwards."""
    with native_stack(_teller(request.config)) as stack:
        yield stack


@contextmanager
def native_stack(say: Say = lambda line: None) -> Iterator[NativeStack]:
    """A native stack in a folder of its own, not started; stopped and deleted at the end, also if this process is killed."""
    folder = Path(tempfile.mkdtemp(prefix="strandline-test-"))
    stack = NativeStack(folder, progress=lambda name, line: say(f"{name} {line}"))
    warden = subprocess.Popen(
        [sys.executable, "-m", "tests.stack_warden", str(folder)], stdin=subprocess.PIPE, start_new_session=True
    )
    try:
        yield stack
        stack.delete()
    finally:
        # Its standard input ends with this block, or with this process.
        warden.communicate()


@asynccontextmanager
async def weaviate_client(addresses: Addresses) -> AsyncIterator[weaviate.WeaviateAsyncClient]:
    """A connected client with the stack's key."""
    client = weaviate.WeaviateAsyncClient(
        ConnectionParams.from_params(
            http_host=addresses.weaviate_http_host,
            http_port=addresses.weaviate_http_port,
            http_secure=False,
            grpc_host=addresses.weaviate_http_host,
            grpc_port=addresses.weaviate_grpc_port,
            grpc_secure=False,
        ),
        auth_client_secret=AuthApiKey(addresses.weaviate_api_key) if addresses.weaviate_api_key else None,
    )
    async with client:
        yield client


@contextmanager
def _containers(say: Say) -> Iterator[Addresses]:
    folder = Path(tempfile.mkdtemp(prefix="strandline-test-"))
    ports, secrets = stack_state.choose_ports(standard=False), stack_state.all_secrets(folder)
    addresses = Addresses.local(ports, secrets)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        for name, service in SERVICES.items():
            say(f"{name} starting {service.container.image}")
            stack.enter_context(container(service, ports[name], secrets[name]))
        for name, service in SERVICES.items():
            _wait_healthy(service, addresses)
            say(f"{name} ready")
        yield addresses


def container(service: Service, ports: dict[str, int], secret: str) -> DockerContainer:
    """The service's container as the table has it, its published ports on loopback."""
    values = {name: str(number) for name, number in ports.items()} | {
        "secret": secret,
        "new_id": stack_state.new_cluster_id(),
    }
    made = DockerContainer(service.container.image, hostname=service.name)
    for variable, value in container_environment(service, values).items():
        made.with_env(variable, value)
    for name, port in service.ports.items():
        if port.published:
            # docker takes a pair of address and port; the type of testcontainers knows the port alone.
            made.ports[f"{port.standard}/tcp"] = ("127.0.0.1", ports[name])  # type: ignore[assignment]
    if service.container.command:
        made.with_command(list(service.container.command))
    return made


def _wait_healthy(service: Service, addresses: Addresses) -> None:
    deadline = time.monotonic() + service.start_timeout.total_seconds()
    while not PROBES[service.name](addresses):
        if time.monotonic() > deadline:
            raise StackError(f"{service.title}'s container does not answer after {service.start_timeout.seconds} s.")
        time.sleep(0.2)


def _teller(config: pytest.Config) -> Say:
    capture = config.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\nservices: {line}", end="", flush=True)

    return say
