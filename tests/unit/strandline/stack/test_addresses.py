"""Addresses, to the environment and back."""

import pytest

from strandline.stack import Addresses, StackError
from strandline.stack.state import choose_ports

HERE = Addresses.local(choose_ports(standard=False), {"kafka": "", "neo4j": "s3cret", "weaviate": "k3y"})


def test_the_environment_carries_all_of_them() -> None:
    assert Addresses.of_environment(HERE.as_environment()) == HERE


def test_an_environment_without_services_gives_none() -> None:
    assert Addresses.of_environment({"PATH": "/bin", "STRANDLINE_USER": "me"}) is None


def test_half_of_the_addresses_are_refused_with_the_missing_names() -> None:
    half = {name: value for name, value in HERE.as_environment().items() if "GRPC" not in name}
    with pytest.raises(StackError, match="STRANDLINE_WEAVIATE__GRPC_PORT missing: set all of them or none"):
        Addresses.of_environment(half)


def test_an_address_without_a_host_is_refused() -> None:
    with pytest.raises(StackError, match="write http://host:port"):
        Addresses.of_environment(HERE.as_environment() | {"STRANDLINE_WEAVIATE__HTTP_URL": "localhost"})


def test_servers_without_authentication_need_no_secrets() -> None:
    open_servers = {
        name: value for name, value in HERE.as_environment().items() if not name.endswith(("PASSWORD", "API_KEY"))
    }
    found = Addresses.of_environment(open_servers)
    assert found is not None
    assert (found.neo4j_password, found.weaviate_api_key) == ("", "")


def test_secrets_stay_out_of_the_representation() -> None:
    assert "s3cret" not in repr(HERE)
    assert "k3y" not in repr(HERE)
