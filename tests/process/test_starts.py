"""Starts that fail, or that somebody ends: one line, the right status, and no traceback."""

import os
import signal
import subprocess
import sys

import pytest

from demo.process import HOST, SERVICE, free_port
from tests.support.fake_service import PROFILE
from tests.support.paths import ROOT

STOPPED, WRONG, LATER = 0, 2, 75
SLOWLY = """
import time
from functools import partial
from service.process import command

def load(settings):
    print("loading", flush=True)
    time.sleep(600)

command.main = partial(command.main, load)
import scoregate_server
scoregate_server.main()
"""


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
    profile = tmp_path / "profile.toml"
    profile.write_text(
        '[models.questions]\nfamily = "transformers"\ncheckpoint = "scoregate/none"\n', "utf-8"
    )
    status, [line] = ended("env", *own(tmp_path), *hub, *SERVICE, "--config", str(profile))

    assert LATER == status
    assert line.startswith(
        "scoregate-server: models.questions: scoregate/none: no such directory, and it cannot"
    )


ENDING = """
import atexit
import scoregate_server
from service.process import command

class Kept:
    def __del__(self):
        print("taken apart")

def main():
    atexit.register(print, "an exit handler")
    return whole()

kept, whole, command.main = Kept(), command.main, main
scoregate_server.main()
"""


def test_a_process_ends_without_taking_its_modules_apart(tmp_path):
    """That takes a second with torch.  Exit handlers of libraries run, and what was printed arrives."""
    command = ("env", *own(tmp_path), sys.executable, "-c", ENDING, "check", "--config", str(PROFILE))
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=240)
    *printed, last = done.stdout.splitlines()

    assert (STOPPED, "an exit handler") == (done.returncode, last)
    assert printed
    assert "taken apart" not in printed


COUNTING = """
from service.process import command
from service.observability.instruments import Instruments

instruments = Instruments(["vqa"])
instruments.requests.labels("/score", "200").inc()
print(next(line for line in instruments.exposition().decode().splitlines() if line.endswith(" 1.0")))
"""


@pytest.mark.parametrize(
    "variables",
    [
        ("OTEL_PROPAGATORS=b3", "OTEL_PYTHON_CONTEXT=none", "PROMETHEUS_MULTIPROC_DIR={folder}/none"),
        ("PROMETHEUS_MULTIPROC_DIR={folder}", "prometheus_multiproc_dir={folder}"),
    ],
)
def test_variables_that_libraries_read_for_other_programs_have_no_effect(variables, tmp_path):
    """As a pod or a shell has them: nothing fails, and another program's folder of metrics is not used."""
    given = [each.format(folder=tmp_path) for each in variables]
    command = ["env", *given, sys.executable, "-c", COUNTING]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=240)

    line = 'scoregate_requests_total{code="200",route="/score"} 1.0'
    assert (0, line, "") == (done.returncode, done.stdout.strip(), done.stderr)
    assert [] == [*tmp_path.iterdir()]
