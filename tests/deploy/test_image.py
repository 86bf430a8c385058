"""The Dockerfile: what can be known without building it.  `make image` builds it."""

import json
import re
import shlex
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from itertools import pairwise

import pytest

from demo.process import free_port
from service.settings.load import load_settings
from tests.deploy.dockerfile import environment, stages
from tests.docs.pages import ROOT
from tests.e2e.double import faulty
from tests.helm.test_scripts import served

TARGETS = ("cpu", "cuda")
LOCKS = ("requirements.lock", "requirements-ray.lock")


def locked():
    """Every package of the image with its version."""
    lines = [line for name in LOCKS for line in (ROOT / name).read_text("utf-8").splitlines()]
    return {line for line in lines if line and not line.startswith("#")}


def installed(target):
    """What the commands of a target hand to pip, after a shell has worked it out."""
    found = set()
    for command in stages()[target].all("RUN"):
        _, _, arguments = command.partition("pip install ")
        said = subprocess.run(
            ["sh", "-c", f"printf '%s\\n' {arguments}"], cwd=ROOT, capture_output=True, text=True
        )
        words = said.stdout.split()
        files = [word for before, word in pairwise(words) if before == "-r"]
        found |= {word for word in words if "==" in word}
        found |= {
            line for name in files for line in (ROOT / name).read_text("utf-8").splitlines() if "==" in line
        }
    return {each for each in found if not each.startswith("-")}


def test_a_build_without_a_target_is_for_gpus():
    """The last stage; both stand on the same one."""
    assert "cuda" == list(stages())[-1]
    assert {"runtime"} == {stages()[target].base for target in TARGETS}


def test_the_image_has_all_packages_of_the_locks():
    """And nothing that is not pinned."""
    assert locked() == installed("cuda")


def test_the_one_for_cpus_lacks_cuda_s_libraries_only():
    """PyTorch comes from an index of its own."""
    left_out = {re.split("[=-]", each)[0] for each in locked() - installed("cpu")}

    assert {"cuda", "nvidia", "triton"} == left_out
    assert installed("cpu") < locked()


def test_pip_installs_nothing_that_no_lock_names():
    """It looks for no dependencies, and takes the index of the build's argument."""
    commands = [run for stage in stages().values() for run in stage.all("RUN") if "pip " in run]

    assert commands
    assert all("--no-deps" in command for command in commands)
    for name in ("wheel", *TARGETS):
        assert any(each.startswith("PIP_INDEX_URL=") for each in stages()[name].all("ARG"))


@pytest.mark.parametrize("target", TARGETS)
def test_a_container_runs_without_root(target):
    """By a number, which Kubernetes can check."""
    uid, gid = stages()[target].all("USER")[-1].split(":")

    assert stages()[target].instructions[-1][0] == "USER"
    assert 0 < int(uid) == int(gid)


def test_sigterm_reaches_the_server():
    """No shell is started around the command."""
    assert ["scoregate-server", "serve"] == json.loads(stages()["runtime"].all("CMD")[0])
    assert ["SIGTERM"] == stages()["runtime"].all("STOPSIGNAL")


def test_a_container_listens_where_it_is_reached():
    """Whatever its profile says; what it writes goes to /tmp and the volumes."""
    settings = load_settings(None, environment())

    assert ("0.0.0.0", 8000) == (settings.server.host, settings.server.port)
    assert [str(settings.server.port)] == stages()["runtime"].all("EXPOSE")
    assert "/tmp" == environment()["HOME"]
    assert environment()["HF_HUB_CACHE"].startswith("/models/")


def test_everything_that_is_copied_is_there_and_not_ignored():
    """`.dockerignore` lets only that through."""
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    allowed = {line[1:] for line in lines if line.startswith("!")}
    copied = {each for stage in stages().values() for line in stage.all("COPY") for each in line.split()[:-1]}

    assert "*" in lines
    assert allowed == copied
    assert all((ROOT / each).exists() for each in copied)


class NotReady(BaseHTTPRequestHandler):
    """A service that lives, and has a model that does not serve."""

    def do_GET(self) -> None:
        self.send_response(503 if self.path == "/readyz" else 200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.mark.integration
def test_the_health_check_asks_whether_the_service_is_ready(tmp_path):
    """Its command, against a service, against one that lives and is not ready, and where there is none."""
    _, command = stages()["runtime"].all("HEALTHCHECK")[0].split("CMD ", 1)
    program, *arguments = json.loads(command)

    def status(port):
        variables = f"SCOREGATE_SERVER__PORT={port}", "http_proxy=http://127.0.0.1:9"
        return subprocess.run(["env", *variables, sys.executable, *arguments], capture_output=True).returncode

    assert "python" == program
    with faulty(tmp_path) as double:
        assert not status(double.port)
    with served(NotReady) as address:
        assert status(address.rpartition(":")[2])
    assert status(free_port(0))


@pytest.mark.parametrize("name", ["base.sh", "build.sh"])
def test_the_scripts_are_ones_that_a_shell_reads(name):
    """And they may be executed."""
    path = ROOT / "deploy" / "image" / name

    assert not subprocess.run(["sh", "-n", path]).returncode
    assert path.stat().st_mode & 0o111


def test_the_demo_of_make_image_needs_nothing_but_the_image():
    """The samples' folder is mounted where no package of the repository lies."""
    script = (ROOT / "deploy" / "image" / "build.sh").read_text("utf-8").replace("\\\n", " ")
    [run] = [shlex.split(line) for line in script.splitlines() if line.startswith("buildah run")]

    assert f"{run[run.index('--workingdir') + 1]}/demo" == run[run.index("--volume") + 1].split(":")[1]
