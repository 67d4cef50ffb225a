"""Both ports or neither, known before anything slow begins."""

import socket

import pytest

from neuroscope_jax.config import NeuroscopeConfig
from neuroscope_jax.errors import UserError
from server.ports import bind_ports


@pytest.fixture
def taken():
    """A port that somebody listens on, and one that is free."""
    with socket.socket() as other, socket.socket() as probe:
        other.bind(("127.0.0.1", 0))
        other.listen()
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
        probe.close()
        yield other.getsockname()[1], free


def is_free(port: int) -> bool:
    with socket.socket() as sock:
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def test_chat_port_in_use(taken):
    used, free = taken
    with pytest.raises(UserError, match=f"--port {used}: the port is in use"):
        bind_ports(NeuroscopeConfig(port=used, features_port=free))
    assert is_free(free)


def test_features_port_in_use_gives_the_chat_port_back(taken):
    used, free = taken
    with pytest.raises(UserError, match=f"--features-port {used}: the port is in use"):
        bind_ports(NeuroscopeConfig(port=free, features_port=used))
    assert is_free(free)


def test_a_second_server_is_refused_while_the_first_still_loads():
    ports = bind_ports(NeuroscopeConfig(port=0, features_port=0))
    try:
        with pytest.raises(UserError, match="in use"):
            bind_ports(NeuroscopeConfig(port=ports.chat.number, features_port=ports.features.number))
    finally:
        ports.close()
    assert is_free(ports.chat.number)


def test_any_free_ports_are_two():
    ports = bind_ports(NeuroscopeConfig(port=0, features_port=0))
    ports.close()
    assert 0 != ports.chat.number != ports.features.number != 0


def test_unknown_host():
    with pytest.raises(UserError, match="--host 203.0.113.7: this machine has no such address"):
        bind_ports(NeuroscopeConfig(host="203.0.113.7", port=0, features_port=0))


def test_a_port_is_had_again_right_after_connections_were_cut():
    """A server that stops first leaves its connections in TIME-WAIT, which must not keep the next one out."""
    ports = bind_ports(NeuroscopeConfig(port=0, features_port=0))
    number = ports.chat.number
    ports.chat.listen()
    with socket.create_connection(("127.0.0.1", number)) as client:
        served, _ = ports.chat.sockets[0].accept()
        served.close()  # the server's side first
        assert client.recv(1) == b""
    ports.close()
    again = bind_ports(NeuroscopeConfig(port=number, features_port=0))
    try:
        again.chat.listen()
        socket.create_connection(("127.0.0.1", number)).close()
    finally:
        again.close()


def test_a_host_that_cannot_be_looked_up():
    with pytest.raises(UserError, match=r"--host no\.such\.host\.invalid: this machine has no such address"):
        bind_ports(NeuroscopeConfig(host="no.such.host.invalid", port=0, features_port=0))
