"""Starts that fail before anything is loaded, or while it is: one line and the right status."""

import logging
import socket

import pytest

from demo.process import HOST, free_port
from models.core.contract import CheckpointAway, CheckpointError
from service.core.errors import ModelFault
from service.core.settings import NotYet, SettingsError
from service.process import LATER, WRONG
from tests.support.command import never, server
from tests.support.fake_service import DIALECTS, PROFILE

__all__ = ["server"]

PORTS = ["server.port", "server.metrics_port", "dialects.port", "dialects.pickle_port"]


@pytest.fixture
def start(server, tmp_path):
    """A start on ports and a store of its own, for which nothing may be loaded unless a test says how."""
    own = {variable(setting): "0" for setting in PORTS} | {
        "SCOREGATE_SERVER__HOST": HOST,
        "SCOREGATE_DIALECTS__ENABLED": str(DIALECTS).replace("'", '"'),
        "SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{tmp_path}/questions.sqlite3",
    }
    own |= {variable(setting): str(free_port(0)) for setting in PORTS[1:]}

    def start(*arguments, load=never, **environment):
        status, _, lines = server(*arguments, "--config", PROFILE, load=load, **own | environment)
        return status, lines

    return start


def variable(setting):
    """The name of a setting in the environment."""
    return f"SCOREGATE_{setting.upper().replace('.', '__')}"


@pytest.mark.parametrize("setting", PORTS)
def test_a_port_that_is_taken_ends_the_start(start, setting):
    """
    With the status on which supervisors start it again.  The line names the setting and the address, and is
    the only one: nothing was loaded yet.
    """
    with socket.create_server((HOST, 0)) as other:
        taken = other.getsockname()[1]
        ended = start(**{variable(setting): str(taken)})

    line = f"scoregate-server: {setting}: cannot listen on {HOST}:{taken}: Address already in use"
    assert (LATER, [line]) == ended


def test_ports_that_are_one_and_the_same_end_the_start(start):
    """The second of them is the one that is named; only a person can change it."""
    port = str(free_port(0))
    status, [line] = start(SCOREGATE_SERVER__PORT=port, SCOREGATE_SERVER__METRICS_PORT=port)

    assert WRONG == status
    assert line.startswith(f"scoregate-server: server.metrics_port: cannot listen on {HOST}:{port}")


@pytest.mark.parametrize(
    "place",
    [
        "/proc/questions.sqlite3",
        "/proc",
        "/dev/full/questions.sqlite3",
        "~nobody-has-this-name/questions.sqlite3",
    ],
)
def test_a_question_store_that_cannot_be_made_ends_the_start(start, place):
    """Whether its folder or its file is at fault; the line names the setting."""
    status, [line] = start(SCOREGATE_CACHE__QUESTIONS=f"sqlite:///{place}")

    assert WRONG == status
    assert line.startswith("scoregate-server: cache.questions: ")


def test_a_question_store_in_a_home_that_cannot_be_written_ends_the_start(start, monkeypatch):
    """The place where it is by default."""
    monkeypatch.setenv("HOME", "/proc")
    status, [line] = start(SCOREGATE_CACHE__QUESTIONS="sqlite:///~/.cache/scoregate/questions.sqlite3")

    assert WRONG == status
    assert line.startswith("scoregate-server: cache.questions: ")


def test_a_setting_that_is_no_number_ends_the_start(start):
    """The line names it."""
    status, [line] = start(SCOREGATE_SERVER__PORT="many")

    assert WRONG == status
    assert "server.port" in line


def test_what_nobody_has_foreseen_ends_the_start_in_one_line_too(start, caplog):
    """The log has the places in the code."""

    def load(settings):
        raise RuntimeError("no such\nthing")

    status, lines = start(load=load)

    assert WRONG == status
    assert ["scoregate-server: a bug, or a library's fault: RuntimeError: no such thing"] == lines
    [record] = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert RuntimeError is record.exc_info[0]


@pytest.mark.parametrize(
    "exc",
    [
        NotYet("server.port: taken"),
        CheckpointAway("models.vqa: the hub is away"),
        SettingsError("server.port: wrong"),
        CheckpointError("models.vqa: wrong"),
        ModelFault("vqa: wrong"),
    ],
)
def test_what_passes_by_itself_has_a_status_of_its_own(start, exc):
    """On 75, EX_TEMPFAIL, supervisors start it again; on 2 they do not.  One line either way."""

    def load(settings):
        raise exc

    status = LATER if isinstance(exc, NotYet | CheckpointAway) else WRONG
    assert (status, [f"scoregate-server: {exc}"]) == start(load=load)


@pytest.mark.parametrize("arguments", [["check"], ["--check"], ["serve"], []])
def test_checking_loads_nothing_and_serving_does(start, arguments):
    """With a command and, as ever, without one."""

    def load(settings):
        raise SettingsError("loaded")

    checks = arguments in (["check"], ["--check"])
    assert (0 if checks else WRONG, [] if checks else ["scoregate-server: loaded"]) == start(
        *arguments, load=load
    )
