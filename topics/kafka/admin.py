"""Creates the topics of the table and compares those that exist with it. Nothing else in Strandline makes or changes a topic."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import structlog
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import InvalidReplicationFactorError, KafkaError, TopicAlreadyExistsError, for_code

from topics.errors import Outage, StrandlineError, TopicDrift
from topics.kafka.names import TopicNames
from topics.registry import TopicSpec

log = structlog.get_logger(__name__)

DEADLINE = timedelta(seconds=30)
"""Of a whole command: a broker that has just started needs some seconds until it knows its controller."""


@asynccontextmanager
async def administering(bootstrap: str, *, deadline: timedelta = DEADLINE) -> AsyncIterator[AIOKafkaAdminClient]:
    """An admin client whose whole use must end within the deadline; broker errors and lateness leave as Outage."""
    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=int(deadline.total_seconds() * 1000))
    try:
        async with asyncio.timeout(deadline.total_seconds()):
            await client.start()
            yield client
    except (KafkaError, OSError) as error:
        reason = str(error) or f"no answer within {deadline.total_seconds():g} s"
        raise Outage("kafka", f"Kafka at {bootstrap} does not answer as it should: {reason}") from error
    finally:
        closing = asyncio.ensure_future(client.close())
        await asyncio.wait({closing}, timeout=2)
        closing.cancel()


async def cluster_id(bootstrap: str) -> str:
    """The id that the cluster was formatted with. Raises Outage."""
    async with administering(bootstrap, deadline=timedelta(seconds=10)) as client:
        return str((await client.describe_cluster())["cluster_id"])


async def ensure_topics(
    bootstrap: str, specs: Sequence[TopicSpec], *, replication: int, prefix: str = ""
) -> tuple[str, ...]:
    """Creates the topics that are missing and waits until each has its leaders; gives their plain names, () if all were there.

    Safe to run again and from several processes at once. Raises TopicDrift if one that exists differs from the table (never changed
    here: people's data lie in it), StrandlineError if the cluster is too small, Outage.
    """
    names = TopicNames(prefix)
    async with administering(bootstrap) as client:
        there = await _described(client, specs, names)
        missing = [spec for spec in specs if spec.name not in there]
        if missing:
            await _create(client, missing, names, replication)
            await _wait_for_leaders(client, missing, names)
            log.info("topics.created", topics=[spec.name for spec in missing], prefix=prefix)
        differences = await _differences(client, specs, names, replication, bootstrap)
    if differences:
        raise TopicDrift(differences)
    return tuple(spec.name for spec in missing)


async def check_topics(
    bootstrap: str, specs: Sequence[TopicSpec], *, replication: int, prefix: str = ""
) -> tuple[str, ...]:
    """One sentence for each difference between broker and table, with what to do; () if there is none. Changes nothing. Raises Outage."""
    async with administering(bootstrap) as client:
        return await _differences(client, specs, TopicNames(prefix), replication, bootstrap)


def topic_config(spec: TopicSpec, replication: int) -> dict[str, str]:
    """The table's configuration, and two replicas that must have a record before it counts as durable, where there are two."""
    return spec.config() | ({"min.insync.replicas": "2"} if replication >= 2 else {})


async def _create(client: AIOKafkaAdminClient, specs: Sequence[TopicSpec], names: TopicNames, replication: int) -> None:
    wanted = [
        NewTopic(
            names.on_broker(spec.name), spec.partitions, replication, topic_configs=topic_config(spec, replication)
        )
        for spec in specs
    ]
    # aiokafka does not raise for a topic that was refused, or that exists: it only reports a code.
    for name, code, message in (await client.create_topics(wanted)).topic_errors:
        error = for_code(code)
        if code and error is InvalidReplicationFactorError:
            raise StrandlineError(
                f"{name}: the cluster has too few brokers for {replication} replicas: set STRANDLINE_KAFKA__REPLICATION lower"
            )
        if code and error is not TopicAlreadyExistsError:
            raise StrandlineError(f"Kafka did not create {name}: {message or error.__name__}")


async def _wait_for_leaders(client: AIOKafkaAdminClient, specs: Sequence[TopicSpec], names: TopicNames) -> None:
    while True:
        there = await _described(client, specs, names)
        if all(spec.name in there and _all_led(there[spec.name]) for spec in specs):
            return
        await asyncio.sleep(0.1)


def _all_led(described: Mapping[str, Any]) -> bool:
    return bool(described["partitions"]) and all(part["leader"] >= 0 for part in described["partitions"])


async def _described(
    client: AIOKafkaAdminClient, specs: Sequence[TopicSpec], names: TopicNames
) -> dict[str, Mapping[str, Any]]:
    """By plain name what the cluster says of the table's topics; asks for all, since asking by name can create one."""
    wanted = {names.on_broker(spec.name): spec.name for spec in specs}
    return {wanted[one["topic"]]: one for one in await client.describe_topics() if one["topic"] in wanted}


async def _differences(
    client: AIOKafkaAdminClient, specs: Sequence[TopicSpec], names: TopicNames, replication: int, bootstrap: str
) -> tuple[str, ...]:
    there = await _described(client, specs, names)
    present = [spec for spec in specs if spec.name in there]
    configs = await _configs(client, [names.on_broker(spec.name) for spec in present])
    found: list[str] = []
    for spec in specs:
        name = names.on_broker(spec.name)
        if spec.name not in there:
            found.append(f"topic {name} is missing: run `strandline topics create`")
            continue
        found.extend(_layout_differences(spec, name, there[spec.name]["partitions"], replication))
        found.extend(_config_differences(spec, name, configs.get(name, {}), replication, bootstrap))
    return tuple(found)


def _layout_differences(
    spec: TopicSpec, name: str, partitions: Sequence[Mapping[str, Any]], replication: int
) -> list[str]:
    found = []
    if len(partitions) != spec.partitions:
        found.append(
            f"topic {name} has {len(partitions)} partitions, the table says {spec.partitions}. Keys would lie elsewhere than on "
            "the other topics: let the workers finish, delete the topic, run `strandline topics create`"
        )
    replicas = min((len(part["replicas"]) for part in partitions), default=0)
    if replicas < replication:
        found.append(
            f"topic {name} has {replicas} replicas, the settings say {replication}: raise it with kafka-reassign-partitions.sh, "
            "or set STRANDLINE_KAFKA__REPLICATION lower"
        )
    return found


def _config_differences(
    spec: TopicSpec, name: str, config: Mapping[str, str], replication: int, bootstrap: str
) -> list[str]:
    return [
        f"topic {name} has {key}={config.get(key, '')}, the table says {wanted}: kafka-configs.sh --bootstrap-server "
        f"{bootstrap} --alter --entity-type topics --entity-name {name} --add-config {key}={wanted}"
        for key, wanted in topic_config(spec, replication).items()
        if config.get(key) != wanted
    ]


async def _configs(client: AIOKafkaAdminClient, names: Sequence[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    found: dict[str, dict[str, str]] = {}
    for response in await client.describe_configs(resources):
        for resource in response.to_object()["resources"]:
            if resource["error_code"]:
                raise for_code(resource["error_code"])(resource["error_message"])
            entries = resource["config_entries"]
            found[resource["resource_name"]] = {one["config_names"]: one["config_value"] for one in entries}
    return found
