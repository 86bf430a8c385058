"""Ports: taken before models are loaded, open when they serve, and named where they are not free."""

import socket

import pytest

from service.core.settings import NotYet
from service.process.ports import bound

HOST = "127.0.0.1"


def connects(port):
    try:
        socket.create_connection((HOST, port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_port_is_open_only_once_it_is_opened():
    """Whoever connects before is refused, and may try another server."""
    with bound("server.port", HOST, 0) as port:
        number = port.held.getsockname()[1]
        before = connects(number)
        port.open()
        after = connects(number)

    assert (False, True, False) == (before, after, connects(number))


def test_a_port_that_another_server_has_is_named():
    """Its setting, its address and the reason, in one line."""
    with bound("server.port", HOST, 0) as first:
        number = first.open().getsockname()[1]
        with (
            pytest.raises(NotYet, match=rf"server\.metrics_port: .* {HOST}:{number}: .*in use"),
            bound("server.metrics_port", HOST, number),
        ):
            pass


def test_of_two_that_start_at_once_the_second_to_open_is_refused():
    """Both may hold the port while their models load."""
    with bound("server.port", HOST, 0) as first:
        number = first.held.getsockname()[1]
        with bound("server.port", HOST, number) as second:
            first.open()
            with pytest.raises(NotYet, match=r"server\.port: .*in use"):
                second.open()


def test_an_address_that_is_not_ours_is_named():
    """As any other reason."""
    with (
        pytest.raises(NotYet, match=r"server\.port: cannot listen on 192\.0\.2\.1:"),
        bound("server.port", "192.0.2.1", 0),
    ):
        pass


def test_responses_that_nobody_reads_do_not_fill_the_kernel():
    """Without a limit it takes megabytes of one connection, and each copy keeps the event loop busy."""
    with bound("server.port", HOST, 0) as port:
        listening = port.open()
        with socket.create_connection((HOST, port.held.getsockname()[1])), listening.accept()[0] as accepted:
            accepted.setblocking(False)
            taken = accepted.send(bytes(2**24))

    assert 0 < taken < 2**20
