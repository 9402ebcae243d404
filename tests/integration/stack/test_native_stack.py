"""The real servers, started, killed and restarted natively: what was committed is there afterwards."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import aiokafka
import neo4j
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from weaviate.classes.config import Configure, DataType, Property

from strandline.stack import SERVICES, Addresses, NativeStack, StackError, processes
from strandline.stack.processes import ServerProcess
from tests.services import native_stack, weaviate_client

pytestmark = [pytest.mark.connected, pytest.mark.timeout(300, func_only=True)]


@pytest.fixture(scope="module")
def stack() -> Iterator[NativeStack]:
    """One stack for this file, whose tests kill it."""
    with native_stack() as started:
        started.up()
        yield started


def pids(stack: NativeStack) -> dict[str, ServerProcess | None]:
    return {name: stack.process(name) for name in SERVICES}


def test_all_three_answer_on_loopback_with_their_versions(stack: NativeStack) -> None:
    rows = stack.status()
    assert [(row.name, row.running, row.healthy) for row in rows] == [(name, True, True) for name in SERVICES]
    assert all(row.address.startswith("127.0.0.1:") and row.memory_bytes > 0 for row in rows)


def test_up_of_a_running_stack_starts_nothing(stack: NativeStack) -> None:
    before = pids(stack)
    stack.up()
    assert pids(stack) == before


def test_strangers_are_not_let_in(stack: NativeStack) -> None:
    address = stack.addresses.neo4j_uri
    with (
        neo4j.GraphDatabase.driver(address, auth=("neo4j", "neo4j")) as driver,
        pytest.raises(neo4j.exceptions.AuthError),
    ):
        driver.verify_connectivity()
    with neo4j.GraphDatabase.driver(address, auth=None) as driver, pytest.raises(neo4j.exceptions.ClientError):
        driver.verify_connectivity()


async def test_what_was_committed_is_there_after_kill_9_of_all_three(stack: NativeStack) -> None:
    addresses = stack.addresses
    await produce(addresses, "kept", b"record")
    write_node(addresses, "kept")
    await write_object(addresses, "Kept", "an object")

    before = pids(stack)
    for name in SERVICES:
        stack.kill(name)
        assert stack.process(name) is None
    assert stack.up() == addresses

    assert all(before[name] != process for name, process in pids(stack).items())
    assert await consume(addresses, "kept") == [b"record"]
    assert nodes(addresses) == ["kept"]
    assert await objects(addresses, "Kept") == ["an object"]


def test_a_clean_stop_and_start_keeps_data_and_ports(stack: NativeStack) -> None:
    addresses = stack.addresses
    write_node(addresses, "calm")
    stack.stop()
    assert set(pids(stack).values()) == {None}
    assert stack.up() == addresses
    assert "calm" in nodes(addresses)


async def test_a_second_stack_sees_nothing_of_the_first(stack: NativeStack, own_stack: NativeStack) -> None:
    mine = own_stack.up()
    assert len({mine.kafka_bootstrap, stack.addresses.kafka_bootstrap}) == 2
    write_node(stack.addresses, "elsewhere")
    assert nodes(mine) == []
    await produce(mine, "own", b"mine")

    own_stack.stop()
    assert all(row.healthy for row in stack.status())


def test_a_server_that_cannot_read_its_data_is_reported_with_its_own_words(stack: NativeStack) -> None:
    stack.stop(("kafka",))
    file = stack.folder / "kafka" / "data" / "meta.properties"
    kept = file.read_text()
    file.write_text(kept.replace("node.id=1", "node.id=7"))
    try:
        with pytest.raises(
            StackError,
            match=r"(?s)Kafka 4\.1\.2 ended while it was starting.*Stored node id 7.*strandline stack logs kafka",
        ):
            stack.start("kafka")
    finally:
        file.write_text(kept)
    stack.start("kafka")


def test_a_killed_test_run_leaves_no_servers(tmp_path: Path) -> None:
    program = (
        "import sys\nfrom tests.services import native_stack\n"
        "with native_stack() as stack:\n    stack.start('weaviate')\n    print(stack.folder, flush=True)\n    sys.stdin.read()"
    )
    root = Path(__file__).parents[3]
    run = subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    )
    with run:
        assert run.stdout is not None
        folder = Path(run.stdout.readline().strip())
        server = NativeStack(folder).process("weaviate")
        assert server is not None
        os.kill(run.pid, signal.SIGKILL)
    assert processes.wait_gone([server], timedelta(minutes=1)) == []


def test_a_fresh_cache_is_filled_from_the_repository(own_stack: NativeStack, tmp_path: Path) -> None:
    said: list[str] = []
    fresh = NativeStack(own_stack.folder, cache=tmp_path / "cache", progress=lambda name, line: said.append(line))
    fresh.start("kafka")
    assert said[:1] == ["fetching 46 jars of version 4.1.2 (Apache-2.0)"]
    assert "fetched 46 jars" in said
    assert not (tmp_path / "cache" / "kafka" / ".building").exists()


async def produce(addresses: Addresses, topic: str, value: bytes) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=addresses.kafka_bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(topic, 1, 1)])
    finally:
        await admin.close()
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=addresses.kafka_bootstrap, acks="all") as producer:
        await producer.send_and_wait(topic, value)


async def consume(addresses: Addresses, topic: str) -> list[bytes]:
    consumer = aiokafka.AIOKafkaConsumer(
        topic, bootstrap_servers=addresses.kafka_bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
    )
    async with consumer:
        batches = await consumer.getmany(timeout_ms=20_000)
    return [record.value for records in batches.values() for record in records]


def write_node(addresses: Addresses, name: str) -> None:
    with _driver(addresses) as driver:
        driver.execute_query("CREATE (:Probe {name: $name})", name=name)


def nodes(addresses: Addresses) -> list[str]:
    with _driver(addresses) as driver:
        return sorted(record["name"] for record in driver.execute_query("MATCH (p) RETURN p.name AS name").records)


async def write_object(addresses: Addresses, collection: str, text: str) -> None:
    async with weaviate_client(addresses) as client:
        made = await client.collections.create(
            collection,
            properties=[Property(name="text", data_type=DataType.TEXT)],
            vector_config=Configure.Vectors.self_provided(),
        )
        await made.data.insert({"text": text})


async def objects(addresses: Addresses, collection: str) -> list[str]:
    async with weaviate_client(addresses) as client:
        found = await client.collections.get(collection).query.fetch_objects()
        return [str(item.properties["text"]) for item in found.objects]


def _driver(addresses: Addresses) -> neo4j.Driver:
    return neo4j.GraphDatabase.driver(addresses.neo4j_uri, auth=(addresses.neo4j_user, addresses.neo4j_password))
