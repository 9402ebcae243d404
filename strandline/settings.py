"""SETTINGS: all that can be configured, from the environment (`STRANDLINE_…`, nested by `__`) and an `.env` file.
Nothing else reads the environment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import timedelta
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from strandline.stack.running import running_addresses
from topics.errors import Refused

PREFIX = "STRANDLINE_"


def _from_seconds(value: object) -> object:
    try:
        return timedelta(seconds=float(value)) if isinstance(value, str) else value
    except ValueError:
        return value  # perhaps ISO 8601, such as PT1M30S


Duration = Annotated[timedelta, BeforeValidator(_from_seconds)]
"""A number of seconds, or ISO 8601."""


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
    session_timeout: Duration = Field(
        timedelta(seconds=10),
        description="After `kill -9` of a worker its partitions stand still so long; Kafka takes 6 s at least.",
    )
    send_deadline: Duration = Field(
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
    timeout: Duration = Field(
        timedelta(seconds=40), description="Of one call; below the 50 s that one try of a turn may take."
    )
    concurrency: int = Field(32, ge=1, description="Calls at once in a process.")
    latency: Duration = Field(timedelta(0), description="Only `scripted`: how long a call pretends to take.")


class EmbedderSection(Section):
    provider: Literal["auto", "openai", "local", "scripted"] = Field(
        "auto", description="Who makes the vectors; `scripted` is for tests."
    )
    model: str = Field("", description='Model name; "" = the provider\'s default here.')
    base_url: str = Field("", description="For an OpenAI-compatible server of your own.")
    timeout: Duration = Field(timedelta(seconds=30), description="Of one request.")


class ApiSettings(Section):
    host: str = Field(
        "127.0.0.1", description="Address to listen on. Without authentication only loopback is accepted."
    )
    port: int = Field(7878, ge=0, le=65535, description="Port; 0 takes a free one.")
    wait_limit: Duration = Field(
        timedelta(seconds=60), description="The longest `wait=` deadline a caller may ask for."
    )


class WorkerSettings(Section):
    group: str = Field("strandline", pattern=r"^[A-Za-z0-9._-]+$", description="Consumer group of the workers.")
    health_host: str = Field("127.0.0.1", description="Address of the worker's own health and metrics page.")
    health_port: int = Field(0, ge=0, le=65535, description="Its port; 0 takes a free one.")
    stall_alarm: Duration = Field(timedelta(minutes=2), description="A record pending longer raises the alarm.")
    stall_exit: Duration = Field(
        timedelta(minutes=10),
        description="A record pending longer, with no service away, ends the process: a supervisor starts a fresh one.",
    )
    grace: Duration = Field(
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
    url: str = Field("http://127.0.0.1:7878", description="Where the command line finds the server.")
    user: str = Field("me", description="Whose memory the command line speaks to.")
    dataset: str = Field("main", description="Which dataset of it.")
    stack_folder: Path | None = Field(None, description="Where `strandline stack` keeps its services' data.")
    log_format: Literal["auto", "json", "text"] = Field(
        "auto", description="`auto`: text on a terminal, else JSON lines."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least level that is written.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, dotenv_settings, RunningStack(settings_cls)


class RunningStack(PydanticBaseSettingsSource):
    """The addresses of the stack that runs in `stack_folder`, for the services of which nothing is set.

    A service of which anything is set gets nothing from here: the stack's password must not travel to somebody else's server.
    """

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        return None, field_name, False  # asked for by the base class; all fields come at once

    def __call__(self) -> dict[str, Any]:
        return {
            section: values
            for section, values in stack_values(self.current_state.get("stack_folder")).items()
            if not values.keys() & self.current_state.get(section, {})
        }


def stack_values(folder: str | Path | None) -> Mapping[str, Mapping[str, str]]:
    """By section and field what the running stack in `folder` (None: the person's own) would set; {} if none runs."""
    addresses = running_addresses(None if folder is None else Path(folder))
    return {} if addresses is None else _nested(addresses.as_environment())


def _nested(environment: Mapping[str, str]) -> dict[str, dict[str, str]]:
    values: dict[str, dict[str, str]] = {}
    for name, value in environment.items():
        section, _, field = name.removeprefix(PREFIX).lower().partition("__")
        values.setdefault(section, {})[field] = value
    return values


def with_changes(changes: Mapping[str, str]) -> Settings:
    """The settings of a process that has `changes`, by variable, in its environment; for one that is started from here."""
    values: dict[str, Any] = dict(_nested({name: value for name, value in changes.items() if "__" in name}))
    values |= {name.removeprefix(PREFIX).lower(): value for name, value in changes.items() if "__" not in name}
    return Settings(**values)


@cache
def load() -> Settings:
    """The process's settings. Raises Refused with the variable's name and what is wrong; never shows a value, it may be a secret."""
    _refuse_unknown_names()
    try:
        return Settings()
    except ValidationError as error:
        items = error.errors(include_input=False, include_url=False)
        lines = [f"{variable(*map(str, item['loc']))}: {item['msg']}" for item in items]
        raise Refused("settings: " + "; ".join(lines)) from None


def variable(*path: str) -> str:
    """The environment's name of a setting."""
    return PREFIX + "__".join(path).upper()


def fields() -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    """Every single setting with its path, in the order of this file."""
    for name, field in Settings.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            for inner, inner_field in field.annotation.model_fields.items():
                yield (name, inner), inner_field
        else:
            yield (name,), field


def named_values() -> Mapping[str, Mapping[str, str | None]]:
    """By origin (`environment`, `.env`) the variables set there, in upper case; the first origin wins."""
    sources = {"environment": EnvSettingsSource(Settings), ".env": DotEnvSettingsSource(Settings)}
    return {
        origin: {name.upper(): value for name, value in source.env_vars.items() if name.upper().startswith(PREFIX)}
        for origin, source in sources.items()
    }


def unnamed_services() -> tuple[str, ...]:
    """Services whose address is set nowhere: a stack of one's own has to provide them."""
    addresses = {"kafka": "bootstrap", "neo4j": "uri", "weaviate": "http_url"}
    named = {name for values in named_values().values() for name in values}
    return tuple(service for service, field in addresses.items() if variable(service, field) not in named)


def child_environment(changes: Mapping[str, str]) -> dict[str, str]:
    """This process's environment with `changes`, for a process that is started from here."""
    return {**os.environ, **changes}


def _refuse_unknown_names() -> None:
    """A misspelt name would otherwise be a setting that silently does nothing."""
    known = [variable(*path) for path, _ in fields()]
    for origin, values in named_values().items():
        for name in values.keys() - set(known):
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else "`strandline settings` lists those there are"
            raise Refused(f"settings: there is no {name} (in the {origin}); {hint}")
