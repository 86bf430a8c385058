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

    def run(url, port=0, more=""):
        profile = tmp_path / "profile.toml"
        profile.write_text(PROFILE.format(url=url, port=port) + more, "utf-8")
        status, out, _ = server("doctor", "--config", profile)
        return status, by_check(out)

    return run


def by_check(out):
    """The lines by the name of the check."""
    return {line[2:].partition(": ")[0]: line for line in out.splitlines()}


def test_a_sound_machine_gets_a_line_per_check_and_status_0(doctor, upstream):
    """The server's known calls are sent with a priority; released models' instructions are only named."""
    status, lines = doctor(upstream.base_url)

    assert 0 == status, lines
    assert "expect: prompts/editscore_edit.txt, " in lines.pop("prompts")
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


@pytest.mark.parametrize("key", ["", "sk-secret\n", "sk-sécret"])
def test_a_key_that_no_header_can_carry_is_a_wrong_setting(doctor, upstream, monkeypatch, key):
    """With status 2; the variable is named, and not the key."""
    monkeypatch.setenv("VLM_KEY", key)
    status, lines = doctor(upstream.base_url, more='api_key_env = "VLM_KEY"\n')

    assert 2 == status
    assert lines["models.vqa"].startswith("✗ models.vqa: api_key_env: the environment variable VLM_KEY ")
    assert "cret" not in lines["models.vqa"]


def test_a_port_in_use_may_become_free(doctor, upstream):
    """With status 75."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        status, lines = doctor(upstream.base_url, taken.getsockname()[1])

    assert 75 == status
    assert "server.port: cannot listen" in lines["ports"]


def test_a_model_may_be_named_in_place_of_a_profile(server):
    """Its memory is compared with what is free; the address to listen on is an argument."""
    status, out, _ = server(
        "doctor", "--model", "demo:clip", "--devices", "cpu", "--host", "127.0.0.2", "--port", 0
    )
    lines = by_check(out)

    assert 0 == status, out
    assert " needed, " in lines["memory of cpu"]
    assert "✓ ports: 127.0.0.2:" in lines["ports"]


def test_an_address_that_is_not_this_machines_may_become_so(server):
    """As after a network interface came up: status 75.  203.0.113.1 is for documentation."""
    status, out, _ = server("doctor", "--model", "demo:clip", "--devices", "cpu", "--host", "203.0.113.1")
    line = by_check(out)["ports"]

    assert 75 == status, out
    assert line.startswith("✗ ports: server.port: cannot listen on 203.0.113.1:")
    assert line.endswith("set another address or port")


def test_the_devices_of_a_ray_cluster_are_said_to_be_unchecked(doctor, upstream):
    """And nothing is said of this machine's GPUs and memory, where no model runs."""
    status, lines = doctor(upstream.base_url, more='[runtime]\nkind = "ray"\n')

    assert 0 == status, lines
    assert lines["devices"].endswith("of the Ray cluster are not checked")
    assert not {"driver", "GPUs", "memory of cpu"} & lines.keys()
