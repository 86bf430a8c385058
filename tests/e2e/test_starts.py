"""Starts that fail, or that somebody ends: one line, the right status, and no traceback."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from demo.process import HOST, SERVICE, free_port
from tests.docs.pages import ROOT
from tests.e2e.double import COMMAND, faulty

pytestmark = pytest.mark.integration

STOPPED, WRONG, LATER = 0, 2, 75
LOADING = """
import time
from service import command

def load(settings):
    {}

command.load_models = load
import scoregate_server
scoregate_server.main()
"""
SLOWLY = LOADING.format('print("loading", flush=True); time.sleep(600)')
BADLY = LOADING.format('raise RuntimeError("no such\\nthing")')


def ended(*command, cwd=ROOT, **environment):
    """The status of a start that ends by itself, and what it says beside its log."""
    assignments = [f"{name}={value}" for name, value in environment.items()]
    done = subprocess.run(
        ["env", *assignments, *command], capture_output=True, text=True, timeout=240, cwd=cwd
    )
    return done.returncode, [line for line in done.stderr.splitlines() if not line.startswith("{")]


def own(folder):
    """A port and a store of the test's own: both are taken before models are loaded."""
    return (
        "SCOREGATE_SERVER__PORT=0",
        f"SCOREGATE_CACHE__QUESTIONS=sqlite:///{folder}/questions.sqlite3",
    )


@pytest.fixture
def taken():
    """A port that another process listens on."""
    with socket.create_server((HOST, 0)) as other:
        yield str(other.getsockname()[1])


@pytest.mark.parametrize("setting", ["server.port", "server.metrics_port"])
def test_a_port_that_is_taken_ends_the_start(taken, setting, tmp_path):
    """
    With the status on which supervisors start it again.  The line names the setting and the address, and is
    the only one: nothing was loaded yet, and nothing logged.
    """
    port = str(free_port(0))
    status, lines = ended(
        *SERVICE,
        SCOREGATE_CACHE__QUESTIONS=f"sqlite:///{tmp_path}/q.sqlite3",
        SCOREGATE_SERVER__PORT=taken if setting == "server.port" else port,
        SCOREGATE_SERVER__METRICS_PORT=taken if setting == "server.metrics_port" else str(free_port(0)),
    )

    assert LATER == status
    assert [f"scoregate-server: {setting}: cannot listen on {HOST}:{taken}: Address already in use"] == lines


def test_ports_that_are_one_and_the_same_end_the_start(tmp_path):
    """The second of them is the one that is named; only a person can change it."""
    port = str(free_port(0))
    status, [line] = ended(
        *COMMAND,
        SCOREGATE_CACHE__QUESTIONS=f"sqlite:///{tmp_path}/q.sqlite3",
        SCOREGATE_SERVER__PORT=port,
        SCOREGATE_SERVER__METRICS_PORT=port,
    )

    assert WRONG == status
    assert line.startswith(f"scoregate-server: server.metrics_port: cannot listen on {HOST}:{port}")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HOME", "/proc"),
        ("SCOREGATE_CACHE__QUESTIONS", "sqlite:////proc/questions.sqlite3"),
        ("SCOREGATE_CACHE__QUESTIONS", "sqlite:////proc"),
        ("SCOREGATE_CACHE__QUESTIONS", "sqlite:////dev/full/questions.sqlite3"),
        ("SCOREGATE_CACHE__QUESTIONS", "sqlite:///~nobody-has-this-name/questions.sqlite3"),
    ],
)
def test_a_question_store_that_cannot_be_made_ends_the_start(variable, value):
    """Whether its folder, its file or the home directory is at fault; the line names the setting."""
    status, [line] = ended(*COMMAND, SCOREGATE_SERVER__PORT=str(free_port(0)), **{variable: value})

    assert WRONG == status
    assert line.startswith("scoregate-server: cache.questions: ")


def test_a_corrupt_question_store_is_moved_aside_and_the_service_serves(tmp_path):
    """The log says where it is now."""
    store = tmp_path / "questions.sqlite3"
    store.write_bytes(b"no database, " * 1000)
    with faulty(tmp_path) as double:
        asked = double.score("a red square", metrics=["dsg"])
        [aside] = tmp_path.glob("questions.sqlite3.corrupt-*Z")

        assert 200 == asked.status_code
        assert b"no database, " * 1000 == aside.read_bytes()
        assert aside.name in double.log.read_text("utf-8")


@pytest.mark.parametrize("package", ["models", "service"])
def test_a_foreign_package_ahead_on_the_path_ends_the_start(package, tmp_path):
    """As a trainer's repository on PYTHONPATH; the line names where it is."""
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").touch()
    command = (sys.executable, "-c", "from scoregate_server import main; main()")
    path = os.pathsep.join([str(tmp_path), str(ROOT)])  # as it is where the service is installed
    status, [line] = ended(*command, cwd=tmp_path, PYTHONPATH=path)

    assert WRONG == status
    assert line.startswith(f"scoregate-server: the package {package} is found in {tmp_path / package}")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_models_are_loaded_ends_the_start_quietly(number, tmp_path):
    """Status 0 as after serving: it was asked to stop, and did."""
    with subprocess.Popen(
        ["env", *own(tmp_path), sys.executable, "-c", SLOWLY],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as process:
        assert "loading\n" == process.stdout.readline()
        process.send_signal(number)

        assert STOPPED == process.wait(60)
        assert "" == process.stderr.read()


def test_a_hub_that_is_away_is_tried_again_by_the_supervisor(tmp_path):
    """One line, to which the hub's own library adds none about its tries."""
    nobody = f"http://{HOST}:{free_port(0)}"
    hub = (f"HF_ENDPOINT={nobody}", f"HF_HUB_CACHE={tmp_path}", "HF_HUB_OFFLINE=0")
    model = "SCOREGATE_MODELS__CLIP__CHECKPOINT=scoregate/none"
    status, [line] = ended("env", *own(tmp_path), *hub, model, *SERVICE)

    assert LATER == status
    assert line.startswith("scoregate-server: models.clip: scoregate/none: no such directory, and it cannot")


def test_what_nobody_has_foreseen_ends_the_start_in_one_line_too(tmp_path):
    """The log has the places in the code."""
    status, lines = ended("env", *own(tmp_path), sys.executable, "-c", BADLY)

    assert WRONG == status
    assert ["scoregate-server: a bug, or a library's fault: RuntimeError: no such thing"] == lines
