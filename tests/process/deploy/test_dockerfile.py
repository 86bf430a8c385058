"""The Dockerfile: what a shell makes of its commands.  `make image` builds it."""

import re
import subprocess
from itertools import pairwise

import pytest

from tests.support.dockerfile import stages
from tests.support.paths import ROOT

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


def test_the_image_has_all_packages_of_the_locks():
    """And nothing that is not pinned."""
    assert locked() == installed("cuda")


def test_the_one_for_cpus_lacks_cuda_s_libraries_only():
    """PyTorch comes from an index of its own."""
    left_out = {re.split("[=-]", each)[0] for each in locked() - installed("cpu")}

    assert {"cuda", "nvidia", "triton"} == left_out
    assert installed("cpu") < locked()


@pytest.mark.parametrize("name", ["base.sh", "build.sh"])
def test_the_scripts_are_ones_that_a_shell_reads(name):
    """And they may be executed."""
    path = ROOT / "deploy" / "image" / name

    assert not subprocess.run(["sh", "-n", path]).returncode
    assert path.stat().st_mode & 0o111


@pytest.mark.parametrize("index", ["", "TORCH_INDEX_URL=file:///wheels"])
def test_the_one_for_cpus_needs_the_index_of_its_wheels(index):
    """Without it pip would install PyTorch for GPUs, which lacks CUDA's libraries there."""
    [command] = [run for run in stages()["cpu"].all("RUN") if "torch(vision)" in run]
    words = "env", "-u", "TORCH_INDEX_URL", *index.split()
    done = subprocess.run(
        [*words, "sh", "-c", command.replace(" pip ", " echo ")], cwd=ROOT, capture_output=True, text=True
    )

    assert bool(index) == (done.returncode == 0)
    assert index or "TORCH_INDEX_URL" in done.stderr
