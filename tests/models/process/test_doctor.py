"""`scoregate-server doctor` as a command, with servers on real sockets."""

import socket

import pytest

from tests.support.command import server
from tests.support.fake_openai import FakeOpenAI

__all__ = ["server"]

PROFILE = """
[server]
port = {port}
[models.vqa]
family = "openai_vlm"
base_url = "{url}"
model = "m"
"""


@pytest.fixture
def upstream():
    """A server of a VQA model."""
    with FakeOpenAI().running() as fake:
        yield fake


@pytest.fixture
def doctor(server, tmp_path):
    """The command on a profile: its status, and its lines by the name of the check."""

    def run(url, port=0):
        profile = tmp_path / "profile.toml"
        profile.write_text(PROFILE.format(url=url, port=port), "utf-8")
        status, out, _ = server("doctor", "--config", profile)
        return status, {line[2:].partition(": ")[0]: line for line in out.splitlines()}

    return run


def test_a_sound_machine_gets_a_line_per_check_and_status_0(doctor, upstream):
    """The server's known calls are sent with a priority."""
    status, lines = doctor(upstream.base_url)

    assert 0 == status, lines
    assert ["✓"] * len(lines) == [line[0] for line in lines.values()]
    assert {"packages", "driver", "hub", "disk", "ports", "models.vqa", "clock"} <= lines.keys()
    assert "log-probabilities of named tokens" in lines["models.vqa"]


def test_a_server_that_serves_another_model_is_a_wrong_setting(doctor, upstream):
    """With status 2."""
    upstream.models = (200, {"data": [{"id": "other"}]})
    status, lines = doctor(upstream.base_url)

    assert 2 == status
    assert "serves no model named m: correct models.vqa" in lines["models.vqa"]


def test_a_server_that_cannot_be_reached_may_come(doctor):
    """With status 75, as at a start that may succeed later."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    status, lines = doctor(f"http://127.0.0.1:{port}/v1")

    assert 75 == status
    assert "cannot be reached" in lines["models.vqa"]


def test_a_port_in_use_may_become_free(doctor, upstream):
    """With status 75."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        status, lines = doctor(upstream.base_url, taken.getsockname()[1])

    assert 75 == status
    assert "server.port: cannot listen" in lines["ports"]
