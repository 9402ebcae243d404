"""SETTINGS: all that can be configured, from the environment (`STRANDLINE_…`, nested by `__`) and an `.env` file.
Nothing else reads the environment."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from topics.errors import Refused


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KafkaSettings(Section):
    bootstrap: str = Field("127.0.0.1:9092", description="Brokers, `host:port`, comma-separated.")
    prefix: str = Field(
        "", pattern=r"^[a-z0-9._-]*$", description="Put before every topic and group name, e.g. `staging.`."
    )
    replication: int = Field(1, ge=1, description="Replicas of a topic that is created; 3 on a cluster.")
    log_id: str = Field(
        "",
        description='Name of the log; "" = the cluster\'s id. Change it when topics are recreated on one cluster.',
    )
    session_timeout: timedelta = Field(
        timedelta(seconds=10),
        description="After `kill -9` of a worker its partitions stand still so long; Kafka takes 6 s at least.",
    )
    send_deadline: timedelta = Field(
        timedelta(seconds=10), description="A send that is not confirmed by then is an outage."
    )


class Neo4jSettings(Section):
    uri: str = Field("bolt://127.0.0.1:7687", description="Bolt address.")
    user: str = Field("neo4j", description="User; ignored without a password.")
    password: SecretStr | None = Field(None, description="Password; none = a server without authentication.")
    database: str = Field("neo4j", description="Database name.")


class WeaviateSettings(Section):
    http_url: str = Field("http://127.0.0.1:8080", description="HTTP address.")
    grpc_port: int = Field(50051, ge=1, le=65535, description="gRPC port on the same host.")
    api_key: SecretStr | None = Field(None, description="API key; none = anonymous.")
    prefix: str = Field("", pattern=r"^([A-Z][A-Za-z0-9]*)?$", description="Put before every collection name.")


class ModelSection(Section):
    provider: Literal["auto", "anthropic", "openai", "local", "scripted"] = Field(
        "auto",
        description="Who reads the texts; `auto`: by the keys that are set, else local. `scripted` is for tests.",
    )
    model: str = Field("", description='Model name; "" = the provider\'s default here.')
    base_url: str = Field("", description="For an OpenAI-compatible server of your own.")
    timeout: timedelta = Field(timedelta(seconds=120), description="Of one call.")
    concurrency: int = Field(32, ge=1, description="Calls at once in a process.")
    latency: timedelta = Field(timedelta(0), description="Only `scripted`: how long a call pretends to take.")


class EmbedderSection(Section):
    provider: Literal["auto", "openai", "local", "hashed"] = Field(
        "auto", description="Who makes the vectors; `hashed` is for tests."
    )
    model: str = Field("", description='Model name; "" = the provider\'s default here.')
    base_url: str = Field("", description="For an OpenAI-compatible server of your own.")
    timeout: timedelta = Field(timedelta(seconds=30), description="Of one request.")


class ApiSettings(Section):
    host: str = Field(
        "127.0.0.1", description="Address to listen on. Without authentication only loopback is accepted."
    )
    port: int = Field(7878, ge=0, le=65535, description="Port; 0 takes a free one.")
    wait_limit: timedelta = Field(
        timedelta(seconds=60), description="The longest `wait=` deadline a caller may ask for."
    )


class WorkerSettings(Section):
    group: str = Field("strandline", pattern=r"^[A-Za-z0-9._-]+$", description="Consumer group of the workers.")
    health_host: str = Field("127.0.0.1", description="Address of the worker's own health and metrics page.")
    health_port: int = Field(0, ge=0, le=65535, description="Its port; 0 takes a free one.")
    stages: str = Field("", description='Comma-separated stages to run; "" = all.')
    stall_alarm: timedelta = Field(timedelta(minutes=2), description="A record pending longer raises the alarm.")
    stall_exit: timedelta = Field(
        timedelta(minutes=10),
        description="A record pending longer, with no service away, ends the process: a supervisor starts a fresh one.",
    )
    grace: timedelta = Field(
        timedelta(seconds=35), description="SIGTERM ends the process within this, also while the broker is down."
    )
    max_pending: int = Field(512, ge=1, description="Records taken and not acknowledged, per partition actor.")


class Settings(BaseSettings):
    """Frozen once loaded; a wrong value or an unknown `STRANDLINE_` name refuses the start and says which."""

    model_config = SettingsConfigDict(
        env_prefix="STRANDLINE_",
        env_nested_delimiter="__",
        env_file=".env",
        frozen=True,
        extra="ignore",
        hide_input_in_errors=True,
    )

    kafka: KafkaSettings = KafkaSettings()
    neo4j: Neo4jSettings = Neo4jSettings()
    weaviate: WeaviateSettings = WeaviateSettings()
    model: ModelSection = ModelSection()
    embedder: EmbedderSection = EmbedderSection()
    api: ApiSettings = ApiSettings()
    worker: WorkerSettings = WorkerSettings()
    anthropic_api_key: SecretStr | None = Field(None, description="Key of the Anthropic API.")
    openai_api_key: SecretStr | None = Field(None, description="Key of the OpenAI API.")
    user: str = Field("me", description="Whose memory the command line speaks to.")
    dataset: str = Field("main", description="Which dataset of it.")
    stack_folder: Path | None = Field(None, description="Where `strandline stack` keeps its services' data.")
    log_format: Literal["auto", "json", "text"] = Field(
        "auto", description="`auto`: text on a terminal, else JSON lines."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level that is written.")


@cache
def load() -> Settings:
    """The process's settings. Raises Refused with the variable's name and what is wrong; never shows a value, it may
    be a secret."""
    try:
        return Settings()
    except ValidationError as error:
        lines = []
        for item in error.errors(include_input=False, include_url=False):
            name = "STRANDLINE_" + "__".join(str(part).upper() for part in item["loc"])
            lines.append(f"{name}: {item['msg']}")
        raise Refused("settings: " + "; ".join(lines)) from None
