"""The table's values in each server's own spelling."""

import hashlib

import pytest

from strandline.stack import render
from strandline.stack.services import SERVICES


@pytest.mark.parametrize(
    ("service", "setting", "variable"),
    [
        ("kafka", "message.max.bytes", "KAFKA_MESSAGE_MAX_BYTES"),
        ("neo4j", "db.tx_log.preallocate", "NEO4J_db_tx__log_preallocate"),
        ("weaviate", "GRPC_PORT", "GRPC_PORT"),
    ],
)
def test_a_setting_is_spelled_as_the_image_reads_it(service: str, setting: str, variable: str) -> None:
    assert render.container_variable(SERVICES[service], setting) == variable


def test_native_settings_carry_the_stacks_ports_and_folders() -> None:
    values = {"client": "20001", "controller": "20002", "data": "/stack/kafka/data"}
    settings = render.native_settings(SERVICES["kafka"], values)
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:20001,CONTROLLER://127.0.0.1:20002"
    assert settings["log.dirs"] == "/stack/kafka/data"


def test_a_backslash_survives_a_properties_file() -> None:
    assert render.properties({"log.dirs": "a\\b"}) == "log.dirs=a\\\\b\n"


def test_the_first_users_line_is_salted_and_hashed_in_rounds() -> None:
    user, credential, _ = render.neo4j_auth_file("s3cret").strip().split(":")
    method, digest, salt, rounds = credential.split(",")
    value = hashlib.sha256(bytes.fromhex(salt) + b"s3cret").digest()
    for _ in range(int(rounds) - 1):
        value = hashlib.sha256(value).digest()
    assert (user, method, digest) == ("neo4j", "SHA-256", value.hex().upper())
    assert render.neo4j_auth_file("s3cret") != render.neo4j_auth_file("s3cret")
