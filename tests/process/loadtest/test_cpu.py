"""CPU time by thread, of a real process, and checkouts by git."""

import subprocess
from pathlib import Path

import pytest

from demo.process import Failed
from loadtest.measures import cpu
from loadtest.servers import PROFILE, name_and_cpu_s
from loadtest.workloads import Spec
from tests.support.paths import ROOT


def test_the_kernel_has_the_names_of_the_services_threads():
    """Before Python 3.14 it would have the name of the process for each."""
    with cpu.Releases().running(ROOT, "--config", str(PROFILE)) as server:
        outcomes, costs = cpu.burst(server, Spec("whole", scale=0.1, image="rl"))
        names = {name_and_cpu_s(thread)[0] for thread in Path(f"/proc/{server.pid}/task").iterdir()}

    assert {"ok"} == {outcome.kind for outcome in outcomes}
    assert {"cpu-bulk_0", "device_0"} < names
    assert 0 < costs["decoding"]
    assert 0 < costs["all"]


def test_a_checkout_has_the_files_of_its_commit_and_is_forgotten(tmp_path):
    """A commit that git does not have is an error that names it."""
    releases = cpu.Releases(tmp_path)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "file").write_text("first")
    releases.git("add", "file")
    releases.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", "first")
    (tmp_path / "file").write_text("second")

    with releases.checkout("HEAD") as tree:
        assert "first" == (tree / "file").read_text()
    assert [str(tmp_path)] == [line.split()[0] for line in releases.git("worktree", "list").splitlines()]
    with pytest.raises(Failed, match="v9"), releases.checkout("v9"):
        pass
