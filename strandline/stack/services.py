"""SERVICES: the one table of what Strandline's stack is made of.

Native configuration files, `docker-compose.yml` and the container fixtures of the tests are all rendered from these rows, so one suite speaks of
one thing. A setting stands once under `settings`; what differs between the two ways (addresses, folders) stands under `native` or `docker`.

Values are `str.format` templates. They may name every port, `{secret}` (the service's password or key, made for each stack), `{new_id}` (a new
cluster id) and, natively, `{home}` (the service's own folder), `{data}` and `{conf}` inside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta

MIB = 1024 * 1024


@dataclass(frozen=True)
class Port:
    """A port the service listens on. `published` ones are for clients; the rest are the service's own affair."""

    standard: int
    published: bool = True


@dataclass(frozen=True)
class Jars:
    """A Java server made of Maven artifacts; the whole resolved set with hashes is in `jars/<service>.txt`."""

    roots: tuple[str, ...]
    """Maven coordinates, resolved one by one: together, one root's dependency management would override the versions of the other."""
    main: str
    jvm: tuple[str, ...]
    arguments: tuple[str, ...]
    config_file: str
    """The file under `{conf}` that gets the settings as `name=value` lines."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Further files under `{conf}`, by name."""
    format_main: str = ""
    """Main class of a command that must run once on an empty data folder; "" if there is none."""
    format_arguments: tuple[str, ...] = ()
    format_leaves: str = ""
    """The file under `{data}` that shows that it has run."""


@dataclass(frozen=True)
class GoCommand:
    """A Go server, built from its module by `go install`; the settings are its environment."""

    module: str
    go: tuple[int, int]
    """The least Go release its go.mod accepts."""
    arguments: tuple[str, ...]
    build_bytes: int
    """Free disk wanted while it builds: module and compiler caches, which are deleted afterwards."""


@dataclass(frozen=True)
class Container:
    """How the image takes what the table says."""

    image: str
    variable: str
    """Template of the environment variable for setting `{name}`."""
    escapes: tuple[tuple[str, str], ...]
    """Replacements made in a setting's name before it goes into `variable`, in order."""
    data: str
    """Where the named volume is mounted."""
    health: tuple[str, ...]
    """The compose health check."""
    memory: str
    """Hard limit, in Docker's notation."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that are no settings of the server."""
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Service:
    """One row. `start_timeout` counts from the process's start until the health check passes; `credential_file` keeps its secret, "" for none."""

    name: str
    title: str
    version: str
    licence: str
    install: Jars | GoCommand
    container: Container
    ports: Mapping[str, Port]
    settings: Mapping[str, str]
    native: Mapping[str, str]
    docker: Mapping[str, str]
    credential_file: str = ""
    start_timeout: timedelta = timedelta(minutes=3)
    stop_grace: timedelta = timedelta(seconds=30)


NEO4J_USER = "neo4j"

KAFKA = Service(
    name="kafka",
    title="Kafka",
    version="4.1.2",
    licence="Apache-2.0",
    install=Jars(
        # Without a binding for slf4j the broker's log goes nowhere; 2.25.3 is the log4j that Kafka 4.1.2 itself carries.
        roots=("org.apache.kafka:kafka_2.13:4.1.2", "org.apache.logging.log4j:log4j-slf4j-impl:2.25.3"),
        main="kafka.Kafka",
        # One small broker: the serial collector and the quick compiler start fastest and take the least memory.
        jvm=(
            "-Xms128m",
            "-Xmx512m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:-UsePerfData",
            "-Dlog4j2.configurationFile={conf}/log4j2.properties",
        ),
        arguments=("{conf}/server.properties",),
        config_file="server.properties",
        files={
            "log4j2.properties": (
                "appender.console.type=Console\n"
                "appender.console.name=console\n"
                "appender.console.layout.type=PatternLayout\n"
                "appender.console.layout.pattern=%d{ISO8601} %p %m (%c)%n\n"
                "rootLogger.level=info\n"
                "rootLogger.appenderRef.console.ref=console\n"
            ),
        },
        format_main="kafka.tools.StorageTool",
        format_arguments=("format", "-t", "{new_id}", "-c", "{conf}/server.properties"),
        format_leaves="meta.properties",
    ),
    container=Container(
        image="apache/kafka:4.1.2",
        variable="KAFKA_{name}",
        escapes=(("_", "__"), (".", "_")),
        data="/var/lib/kafka/data",
        health=("CMD", "/opt/kafka/bin/kafka-broker-api-versions.sh", "--bootstrap-server", "kafka:19092"),
        memory="1g",
        environment={"CLUSTER_ID": "{new_id}", "KAFKA_HEAP_OPTS": "-Xms128m -Xmx512m"},
    ),
    ports={"client": Port(9092), "controller": Port(9093, published=False)},
    settings={
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,HOST:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "auto.create.topics.enable": "false",
        # A record of 4 MiB and its batch's header; a topic may allow less.
        "message.max.bytes": str(5 * MIB),
        "replica.fetch.max.bytes": str(5 * MIB),
        "socket.request.max.bytes": str(64 * MIB),
        # One node: nothing to copy to, no second consumer worth waiting for.
        "default.replication.factor": "1",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "8",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "8",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "2",
        "group.initial.rebalance.delay.ms": "0",
    },
    native={
        "listeners": "PLAINTEXT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
        "controller.quorum.voters": "1@127.0.0.1:{controller}",
        "log.dirs": "{data}",
    },
    docker={
        "listeners": "PLAINTEXT://0.0.0.0:19092,HOST://0.0.0.0:9092,CONTROLLER://0.0.0.0:9093",
        # Other containers say kafka:19092; the host's programs say the published port.
        "advertised.listeners": "PLAINTEXT://kafka:19092,HOST://127.0.0.1:{client}",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "log.dirs": "/var/lib/kafka/data",
    },
)

_NEO4J_OPENS = ("java.nio", "java.io", "java.lang", "java.util.concurrent", "sun.nio.ch")

NEO4J = Service(
    name="neo4j",
    title="Neo4j",
    version="5.26.16",
    licence="GPL-3.0",
    install=Jars(
        roots=("org.neo4j:neo4j:5.26.16", "org.neo4j.app:neo4j-server:5.26.16"),
        main="org.neo4j.server.CommunityEntryPoint",
        jvm=(
            "-Xms256m",
            "-Xmx1g",
            "-XX:-UsePerfData",
            *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _NEO4J_OPENS),
        ),
        arguments=("--home-dir={home}", "--config-dir={conf}"),
        config_file="neo4j.conf",
    ),
    container=Container(
        image="neo4j:5.26.16-community",
        variable="NEO4J_{name}",
        escapes=(("_", "__"), (".", "_")),
        data="/data",
        health=("CMD-SHELL", 'cypher-shell -u "$${NEO4J_AUTH%%/*}" -p "$${NEO4J_AUTH#*/}" "RETURN 1"'),
        memory="2g",
        environment={
            "NEO4J_AUTH": NEO4J_USER + "/{secret}",
            "NEO4J_server_memory_heap_initial__size": "256m",
            "NEO4J_server_memory_heap_max__size": "1g",
        },
    ),
    ports={"bolt": Port(7687)},
    credential_file="neo4j.password",
    settings={
        # Loopback is shared by every account and program of the machine, and the graph is the truth: so a password, also on a laptop.
        "dbms.security.auth_enabled": "true",
        "server.bolt.enabled": "true",
        "server.http.enabled": "false",
        "server.https.enabled": "false",
        "dbms.usage_report.enabled": "false",
        "server.memory.pagecache.size": "256m",
        # Else every database takes 256 MB of disk at once, and keeps two days or 2 GB of logs.
        "db.tx_log.preallocate": "false",
        "db.tx_log.rotation.retention_policy": "1 days 256M",
    },
    native={
        "server.bolt.listen_address": "127.0.0.1:{bolt}",
        "server.bolt.advertised_address": "127.0.0.1:{bolt}",
        "server.directories.data": "{data}",
        "server.directories.logs": "{home}/logs",
    },
    docker={
        "server.bolt.listen_address": "0.0.0.0:7687",
        "server.bolt.advertised_address": "127.0.0.1:{bolt}",
    },
)

WEAVIATE = Service(
    name="weaviate",
    title="Weaviate",
    # Not below 1.37.10: earlier ones miss matches of several words that are not flushed yet; graph/weaviate/canary.py looks for it.
    version="1.37.10",
    licence="BSD-3-Clause",
    install=GoCommand(
        module="github.com/weaviate/weaviate/cmd/weaviate-server",
        go=(1, 26),
        arguments=("--host", "127.0.0.1", "--port", "{http}", "--scheme", "http"),
        build_bytes=5_000_000_000,
    ),
    container=Container(
        image="cr.weaviate.io/semitechnologies/weaviate:1.37.10",
        variable="{name}",
        escapes=(),
        data="/var/lib/weaviate",
        health=("CMD", "wget", "--quiet", "--spider", "http://127.0.0.1:8080/v1/.well-known/ready"),
        memory="2g",
        command=("--host", "0.0.0.0", "--port", "8080", "--scheme", "http"),  # noqa: S104 - inside the container
    ),
    ports={
        "http": Port(8080),
        "grpc": Port(50051),
        "gossip": Port(7946, published=False),
        "cluster_data": Port(7947, published=False),
        "raft": Port(8300, published=False),
        "raft_rpc": Port(8301, published=False),
    },
    credential_file="weaviate.key",
    settings={
        # Its gRPC and cluster ports listen on every address and cannot be told otherwise; so nobody is let in without the key.
        "AUTHENTICATION_ANONYMOUS_ACCESS_ENABLED": "false",
        "AUTHENTICATION_APIKEY_ENABLED": "true",
        "AUTHENTICATION_APIKEY_ALLOWED_KEYS": "{secret}",
        "AUTHENTICATION_APIKEY_USERS": "strandline",
        "CLUSTER_BASIC_AUTH_USERNAME": "strandline",
        "CLUSTER_BASIC_AUTH_PASSWORD": "{secret}",
        "CLUSTER_BIND_ADDR": "127.0.0.1",
        "AUTOSCHEMA_ENABLED": "false",
        "DEFAULT_VECTORIZER_MODULE": "none",
        "ENABLE_MODULES": "",
        "CLUSTER_HOSTNAME": "node1",
        # Without it the start fails after 30 s where the host has an IPv6 address.
        "CLUSTER_ADVERTISE_ADDR": "127.0.0.1",
        "RAFT_BOOTSTRAP_EXPECT": "1",
        "DISABLE_TELEMETRY": "true",
        "GO_PROFILING_DISABLE": "true",
        "GOMEMLIMIT": "1GiB",
        # A laptop's disk is often nine tenths full, where the default would turn read-only.
        "DISK_USE_WARNING_PERCENTAGE": "95",
        "DISK_USE_READONLY_PERCENTAGE": "98",
    },
    native={
        "PERSISTENCE_DATA_PATH": "{data}",
        "GRPC_PORT": "{grpc}",
        "CLUSTER_GOSSIP_BIND_PORT": "{gossip}",
        "CLUSTER_DATA_BIND_PORT": "{cluster_data}",
        "RAFT_PORT": "{raft}",
        "RAFT_INTERNAL_RPC_PORT": "{raft_rpc}",
    },
    docker={"PERSISTENCE_DATA_PATH": "/var/lib/weaviate", "GRPC_PORT": "50051"},
)

SERVICES: Mapping[str, Service] = {service.name: service for service in (KAFKA, NEO4J, WEAVIATE)}
"""All services by name, in the order in which people read them."""
