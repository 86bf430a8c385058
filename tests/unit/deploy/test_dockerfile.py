"""The Dockerfile: what can be known without building it.  `make image` builds it."""

import json
import shlex

import pytest

from service.wiring.load import load_settings
from tests.support.dockerfile import environment, stages
from tests.support.paths import ROOT

TARGETS = ("cpu", "cuda")


def test_a_build_without_a_target_is_for_gpus():
    """The last stage; both stand on the same one."""
    assert "cuda" == list(stages())[-1]
    assert {"runtime"} == {stages()[target].base for target in TARGETS}


def test_pip_installs_nothing_that_no_lock_names():
    """It looks for no dependencies, and takes the index of the build's argument, or its own without one."""
    commands = [run for stage in stages().values() for run in stage.all("RUN") if "pip " in run]

    assert commands
    assert all("--no-deps" in command for command in commands)
    for name in ("wheel", *TARGETS):
        assert "PIP_INDEX_URL" in stages()[name].all("ARG")


@pytest.mark.parametrize("name", ["Dockerfile", "deploy/image/base.sh", "deploy/image/build.sh"])
def test_a_build_names_no_index_of_packages(name):
    """pip and debootstrap have defaults, which a machine's own settings replace."""
    assert "://" not in (ROOT / name).read_text("utf-8")


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


def test_the_demo_of_make_image_needs_nothing_but_the_image():
    """The folder of samples is mounted where no package of ours lies; the page would need the client."""
    script = (ROOT / "deploy" / "image" / "build.sh").read_text("utf-8").replace("\\\n", " ")
    [run] = [shlex.split(line) for line in script.splitlines() if line.startswith("buildah run")]

    assert f"{run[run.index('--workingdir') + 1]}/demo" == run[run.index("--volume") + 1].split(":")[1]
    assert "--no-page" in run
