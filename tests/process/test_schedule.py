"""tests/support/schedule.py: which worker of pytest-xdist runs a test."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.schedule import SHARED, WITH_EXTERNAL, files, group, tier

MODULE = """
import os
import pytest

with open("{collected}", "a") as file:
    print(os.environ["PYTEST_XDIST_WORKER"], __file__, file=file)

@pytest.mark.parametrize("number", range(9))
def test_it(number):
    with open("{log}", "a") as file:
        print(os.environ["PYTEST_XDIST_WORKER"], file=file)
"""
MODULES = (
    *("unit/test_a.py", "unit/test_b.py"),
    *("external/chromium/test_g.py", "process/docs/guides/test_running.py"),
    *("external/ray/test_c.py", "external/ray/test_d.py", "external/vllm/test_e.py"),
    *("process/test_connections.py", "process/test_f.py", "process/test_slow_callers.py"),
)
PLUGINS = ("-p", "xdist", "-p", "tests.support.schedule")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder of modules that two workers have run, and their notes."""
    folder = tmp_path_factory.mktemp("schedule")
    for module in MODULES:
        path = folder / "tests" / module
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MODULE.format(log=folder / path.stem, collected=folder / "collected"))
    environment = ("env", f"PYTHONPATH={ROOT}", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1")
    options = ("--rootdir", folder, "--numprocesses", "2", "--dist", "loadgroup", "--no-loadscope-reorder")
    subprocess.run([*environment, sys.executable, "-m", "pytest", *PLUGINS, *options, folder], check=True)
    return folder


@pytest.fixture
def workers(folder):
    """Of both workers, those that ran tests of each module."""
    return {module: set((folder / Path(module).stem).read_text().split()) for module in MODULES}


def test_tests_of_a_file_share_a_worker(workers):
    """Both workers run tests, and what a file shares is made once."""
    first, second = workers["unit/test_a.py"], workers["unit/test_b.py"]

    assert (1, 1) == (len(first), len(second))
    assert first != second


def test_tests_of_an_external_server_share_a_worker(workers):
    """Two files of one folder in tests/external."""
    first, second = workers["external/ray/test_c.py"], workers["external/ray/test_d.py"]

    assert 1 == len(first)
    assert first == second


def test_tests_of_a_shared_server_share_a_worker(workers):
    """Though a file without it lies between them."""
    first, second = workers["process/test_connections.py"], workers["process/test_slow_callers.py"]

    assert 1 == len(first)
    assert first == second


def test_tests_of_a_server_that_an_external_folder_uses_too_share_its_worker(workers):
    """The other files of `process` run elsewhere, too."""
    first, second = workers["external/chromium/test_g.py"], workers["process/docs/guides/test_running.py"]

    assert 1 == len(first)
    assert first == second


def test_workers_begin_to_collect_at_different_files(folder):
    """Each collects all of them; the one compiles what the other would have compiled at the same moment."""
    notes = [line.split() for line in (folder / "collected").read_text().splitlines()]
    first, second = ([path for worker, path in notes if worker == name] for name in ("gw0", "gw1"))

    assert len(MODULES) == len(first)
    assert sorted(first) == sorted(second)
    assert first[0] == second[len(MODULES) // 2]


def test_files_of_an_ignored_folder_are_not_collected():
    """A worker names the files itself, and pytest ignores none that is named."""
    found = files("tests", ["tests/costs"])

    assert {*files("tests")} - {*found} == {*files("tests/costs")}
    assert files("tests/costs")


def test_files_that_use_a_shared_server_are_named_with_it(request):
    """Of the tests that were collected here: otherwise a second worker starts the server."""
    uses = {
        (group(item.nodeid), server)
        for item in request.session.items
        for server in SHARED.keys() & set(item.fixturenames)
        if tier(item.nodeid) == "process" or server in WITH_EXTERNAL
    }

    assert [] == [(own, server) for own, server in uses if own != WITH_EXTERNAL.get(server, server)]
