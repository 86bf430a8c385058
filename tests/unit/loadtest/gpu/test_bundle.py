"""What `make gpu` brings to a machine without network."""

import re

import pytest

from loadtest.gpu import bundle
from loadtest.gpu.bundle import HAVE, PEERS, REQUIREMENTS, Requirement, platforms, requirements, target
from tests.support.paths import ROOT

LOCKS = [ROOT / "requirements.lock", *(ROOT / "loadtest/peers/servers").glob("*.lock")]
FLOATING = {"torchvision"}  # its version follows PyTorch's


class Pip:
    """Notes what would be downloaded; there are no wheels of what is *missing*."""

    def __init__(self, *missing):
        self.asked, self.missing = [], missing

    def __call__(self, arguments):
        self.asked.append(arguments)
        return not any(name in " ".join(arguments) for name in self.missing)


def test_every_pin_is_that_of_another_lock():
    """So one change of a version is one change."""
    pinned = {line for lock in LOCKS for line in lock.read_text("utf-8").splitlines() if "==" in line}
    found = [*requirements()]

    assert [] == [each.wheel for each in found if each.wheel not in pinned and each.name not in FLOATING]
    lines = [line for line in REQUIREMENTS.read_text("utf-8").splitlines() if line and line[0] != "#"]
    assert len(lines) == len(found)
    assert {each.via for each in found} - {""} <= {each.name for each in found}


def test_what_the_machine_has_is_left_out_with_what_only_that_needs():
    numba, llvm = Requirement("numba", "numba==1"), Requirement("llvmlite", "llvmlite==1", "numba")

    assert numba.is_of(HAVE)
    assert llvm.is_of(HAVE)
    assert not Requirement("fastapi", "fastapi==1").is_of(HAVE)


def test_a_bundle_has_the_sources_the_wheels_and_their_list(tmp_path, capsys):
    """Without weights, and without what the machine has."""
    pip = Pip()
    bundle.bundle(tmp_path / "bundle", have=(*HAVE, "fastapi"), download=pip)
    listed = (tmp_path / "bundle" / "requirements.txt").read_text().split()
    assert all(["--dest", str(tmp_path / "bundle" / "wheels")] == asked[2:4] for asked in pip.asked)
    assert {*listed} == {each for asked in pip.asked for each in asked[4:]}
    names = {line.partition("==")[0] for line in listed}

    assert {"uvicorn", "litserve", "pyzmq", "mosec"} < names
    assert not names & {*HAVE, "fastapi", "llvmlite"}
    assert [*names] != []
    files = {path.relative_to(tmp_path / "bundle").as_posix() for path in (tmp_path / "bundle").rglob("*")}
    assert {"Makefile", "demo/process.py", "loadtest/gpu/__main__.py", "service/__main__.py"} < files
    assert "models/demo/weights/clip_flant5/spiece.model" in files
    assert not [name for name in files if name.endswith((".safetensors", ".pyc"))]
    printed = capsys.readouterr().out
    assert re.search(rf"bundle: [\d.]+ MB, {len(listed)} packages", printed)
    assert "--no-index --find-links wheels" in printed


def test_a_peer_without_a_wheel_is_left_out(tmp_path, capsys):
    """All others are there."""
    bundle.bundle(tmp_path, have=HAVE, download=Pip("mosec"))

    assert "mosec is left out\n" in capsys.readouterr().out
    listed = (tmp_path / "requirements.txt").read_text()
    assert "litserve" in listed
    assert "msgspec" not in listed


def test_another_wheel_that_is_missing_ends_the_command(tmp_path):
    pip = Pip("uvicorn")

    with pytest.raises(SystemExit, match="cannot be downloaded"):
        bundle.bundle(tmp_path, have=HAVE, download=pip)
    assert 1 == len(pip.asked)
    assert not any(each.startswith(PEERS) for each in pip.asked[0])


def test_pip_gets_the_machine_s_version_of_python_and_platform():
    """Wheels for an older glibc run on a newer one, which pip does not try by itself."""
    assert [] == [*target("", "")]
    assert ["--python-version=3.12", "--platform=win_amd64"] == [*target("3.12", "win_amd64")]
    newest, *_, older, oldest = platforms("manylinux_2_28_x86_64")
    assert ("manylinux_2_28_x86_64", "manylinux2010_x86_64", "manylinux1_x86_64") == (newest, older, oldest)
    assert "manylinux_2_17_x86_64" in platforms("manylinux_2_28_x86_64")
