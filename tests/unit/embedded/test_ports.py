"""Free ports."""

from __future__ import annotations

import socket

import pytest

from fairdrop.embedded import free_port, free_ports
from fairdrop.errors import ConfigurationError


def test_free_ports_are_different_and_can_be_listened_on() -> None:
    ports = free_ports(5)
    assert len(set(ports)) == 5
    for port in ports:
        with socket.create_server(("127.0.0.1", port)):
            pass


def test_free_ports_are_not_among_those_of_outgoing_connections() -> None:
    assert all(port < 32_768 for port in free_ports(20))


def test_a_preferred_port_is_taken_if_it_is_free() -> None:
    port = free_port()
    assert free_port(preferred=port) == port


def test_a_preferred_port_in_use_gives_way_to_another() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(preferred=port) != port


def test_an_address_that_is_not_ours_is_a_mistake_in_the_configuration() -> None:
    with pytest.raises(ConfigurationError, match=r"192\.0\.2\.1"):
        free_port(host="192.0.2.1")
