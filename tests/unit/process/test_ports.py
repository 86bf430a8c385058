"""Ports: taken before models are loaded, open when they serve, and named where they are not free."""

import socket
from pathlib import Path

import pytest
from pydantic import ValidationError

from service.core.settings import NotYet, SettingsError
from service.core.settings.sections import Server
from service.core.settings.tree import Settings
from service.process.doctor import check_ports
from service.process.ports import UnixSocket, bound

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


def test_a_unix_socket_is_there_while_it_is_open(tmp_path):
    """Its owner and their group may connect; before, models are loaded."""
    path = tmp_path / "http.sock"
    with UnixSocket("server.uds", path) as place:
        assert not path.exists()
        place.open()
        assert 0o660 == path.stat().st_mode & 0o777
        with socket.socket(socket.AF_UNIX) as caller:
            caller.connect(str(path))
        assert f"unix:{path}" == place.address

    assert not path.exists()


def test_a_socket_that_a_killed_process_left_is_replaced(tmp_path):
    """Nobody listens on it."""
    path = tmp_path / "http.sock"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
    with UnixSocket("server.uds", path) as place, socket.socket(socket.AF_UNIX) as caller:
        place.open()
        caller.connect(str(path))


def test_a_socket_on_which_another_process_listens_is_taken(tmp_path):
    """At the start, and when the models of both were loaded at the same time; it stays."""
    path = tmp_path / "http.sock"
    with UnixSocket("server.uds", path) as first, UnixSocket("server.uds", path) as second:
        first.open()
        for attempt in (second.open, lambda: UnixSocket("server.uds", path)):
            with pytest.raises(NotYet, match=rf"server\.uds: cannot listen on unix:{path}: .*in use"):
                attempt()
        second.__exit__(None, None, None)
        assert path.exists()


def test_a_socket_that_replaced_the_own_one_is_not_removed(tmp_path):
    """An operator may have moved files."""
    path = tmp_path / "http.sock"
    with UnixSocket("server.uds", path) as place:
        place.open()
        path.unlink()
        path.touch()

    assert path.exists()


def test_where_no_unix_socket_can_be_is_an_error_before_models_are_loaded(tmp_path):
    """A file is not replaced."""
    (tmp_path / "file").write_text("mine")
    for path, why in ((tmp_path / "file", "a file that is no socket"), (tmp_path / "no" / "a", "no folder")):
        with pytest.raises(SettingsError, match=why) as raised:
            UnixSocket("server.uds", path)
        assert not isinstance(raised.value, NotYet)
    assert "mine" == (tmp_path / "file").read_text()


@pytest.mark.parametrize("path", ["run/http.sock", "unix:/run/http.sock", "/run/" + "a" * 103, "/run/a\n"])
def test_a_path_that_is_no_unix_socket_is_refused_by_its_setting(path):
    """With what is wrong about it."""
    with pytest.raises(ValidationError, match="Unix socket"):
        Server(uds=path)
    assert Path("/run/http.sock") == Server(uds="/run/http.sock").uds


def test_the_doctor_tries_the_socket_and_leaves_no_file(tmp_path):
    """The port is not needed then."""
    path = tmp_path / "http.sock"
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        settings = Settings(server=Server(uds=path, port=other.getsockname()[1]), models={})
        finding = check_ports(settings)
    assert f"unix:{path}" in str(finding)
    assert 0 == finding.status
    assert not path.exists()
