"""The table of services, walked: what is said twice must agree."""

import re

import pytest

from strandline.stack.health import PROBES
from strandline.stack.installs import jar_list, read_jars
from strandline.stack.services import SERVICES, GoCommand, Jars, Service

every_service = pytest.mark.parametrize("service", SERVICES.values(), ids=SERVICES)
every_jar_server = pytest.mark.parametrize(
    "service", [row for row in SERVICES.values() if isinstance(row.install, Jars)], ids=lambda row: row.name
)


@every_service
def test_the_image_is_of_the_version_that_runs_natively(service: Service) -> None:
    assert re.search(rf":{re.escape(service.version)}(-community)?$", service.container.image)


@every_service
def test_a_setting_stands_in_one_place(service: Service) -> None:
    assert not service.settings.keys() & (service.native.keys() | service.docker.keys())


@every_service
def test_every_native_port_is_told_to_the_server(service: Service) -> None:
    told = " ".join([*service.native.values(), *service.install.arguments])
    assert [name for name in service.ports if f"{{{name}}}" not in told] == []


@every_service
def test_every_service_can_be_asked_whether_it_is_there(service: Service) -> None:
    assert service.name in PROBES


def test_no_two_services_want_the_same_standard_port() -> None:
    numbers = [port.standard for service in SERVICES.values() for port in service.ports.values()]
    assert len(numbers) == len(set(numbers))


@every_jar_server
def test_the_jar_list_holds_every_root_of_the_table(service: Service) -> None:
    assert isinstance(service.install, Jars)
    listed = {f"{jar.group}:{jar.artifact}:{jar.version}" for jar in read_jars(jar_list(service))}
    assert set(service.install.roots) <= listed


@every_jar_server
def test_the_parts_of_a_server_are_all_of_its_version(service: Service) -> None:
    own = "org.apache.kafka" if service.name == "kafka" else "org.neo4j"
    strangers = ("neo4j-java-driver", "neo4j-bolt-connection")
    versions = {
        jar.version
        for jar in read_jars(jar_list(service))
        if jar.group == own and not jar.artifact.startswith(strangers)
    }
    assert versions == {service.version}


@every_jar_server
def test_every_jar_has_a_hash_and_no_artifact_is_there_twice(service: Service) -> None:
    jars = read_jars(jar_list(service))
    assert all(re.fullmatch("[0-9a-f]{64}", jar.sha256) for jar in jars)
    assert len({(jar.group, jar.artifact, jar.classifier) for jar in jars}) == len(jars)


def test_weaviate_is_not_older_than_the_release_that_finds_fresh_words() -> None:
    service = SERVICES["weaviate"]
    assert isinstance(service.install, GoCommand)
    assert tuple(map(int, service.version.split("."))) >= (1, 37, 10)
