"""The command without a service."""

import httpx2 as httpx
import pytest

from demo.process import free_port, url

PROMPT = ("-p", "a red square")


@pytest.mark.parametrize(
    "call",
    [
        ("health",),
        ("score", "pictures/red.png", *PROMPT),
        ("rank", "pictures/red.png", *PROMPT),
        ("questions", "x"),
        ("batch", "pictures", "-o", "out.jsonl"),
    ],
    ids=lambda call: call[0],
)
def test_a_service_that_is_not_there_is_status_3(command, pictures, call):
    """With one line that names the address, given before the command or behind it"""
    nobody = url(free_port(0))
    for arguments in ((*call, "--base-url", nobody), ("--base-url", nobody, *call)):
        status, out, err = command(None, *arguments)

        assert (3, "") == (status, out)
        [line] = err.splitlines()
        assert nobody in line
        assert line.endswith("start a service with `make serve`, or add --local demo")
    assert not (pictures.parent / "out.jsonl").exists()


@pytest.mark.parametrize("command", [(), ("score",), ("batch",), ("calibrate",), ("health",)])
def test_every_command_says_its_version(run, command):
    """And nothing else."""
    assert "scoregate 0.1.0\n" == run(*command, "--version").stdout


def test_a_404_of_another_server_says_so(command):
    """The service's own 404 is in its form, and needs no hint."""
    other = command(lambda request: httpx.Response(404, text="not here"), "score", "p.png", *PROMPT)
    problem = {"code": "not_found", "detail": "no such path"}
    own = command(lambda request: httpx.Response(404, json=problem), "score", "p.png", *PROMPT)

    assert "is this another server's port? name the service with --base-url" in other[2]
    assert (2, 2) == (other[0], own[0])
    assert "another server" not in own[2]
