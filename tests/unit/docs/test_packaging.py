"""pyproject.toml, the locks, and what people are told to install."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from service.wiring.load import PROFILES
from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PINNED = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "requirements.lock").read_text("utf-8"), re.MULTILINE)
LOCK = {canonicalize_name(name): version for name, version in PINNED}
EXTRAS = [
    each for extra in ("gpu", "redis", "ocr", "otel") for each in PROJECT["optional-dependencies"][extra]
]
ALL = map(Requirement, [*PROJECT["dependencies"], *EXTRAS])
WANTED = {canonicalize_name(each.name): each.specifier for each in ALL}
BOUNDED = "torch", "torchvision", "transformers", "open-clip-torch", "pydantic", "fastapi"


@pytest.mark.parametrize("name", BOUNDED)
def test_a_new_major_version_is_not_taken_unseen(name):
    """The range ends below the major version after the locked one."""
    major = int(LOCK[name].split(".")[0])

    assert not WANTED[name].contains(f"{major + 1}.0")


@pytest.mark.parametrize("name", sorted(WANTED))
def test_the_locked_version_is_in_the_range(name):
    """So what `make` installs is what pyproject.toml allows."""
    assert WANTED[name].contains(LOCK[name])


def test_what_make_demo_sets_up_has_the_package_that_versus_needs():
    """README compares two folders after that command."""
    [rule] = re.findall(
        r"^\$\(VENV\)/server:.*\n(?:\t.*\n)+", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE
    )
    locks = re.findall(r"-r (\S+\.lock)", rule)

    assert any(
        line.startswith("scipy==") for lock in locks for line in (ROOT / lock).read_text().splitlines()
    )


def test_nobody_is_told_to_install_a_name_that_is_not_ours():
    """Whoever takes a name of ours on the public index could run code here.  Files are installed instead."""
    sources = [f"{folder}/**/*.py" for folder in ("service", "models", "demo", "loadtest", "client/src")]
    patterns = ["*.md", "Makefile", "docs/**/*.md", "client/*.md", "deploy/**/*.toml", *sources]
    name = r"\bscoregate-(server|client)\b"
    wrong = re.compile(rf'install[^\n`]*{name}(?!\[?[\w,]*\]? @ file:)|dependencies = \[[^\]]*"{name}')
    files = [path for pattern in patterns for path in ROOT.glob(pattern)]

    assert files
    assert [] == [str(path) for path in files if wrong.search(path.read_text("utf-8"))]


@pytest.mark.parametrize("folder", ["service", "models", "client/src/scoregate"])
def test_a_wheel_has_every_file_of_its_packages(folder):
    """Each folder with modules is a package, and each other file matches a pattern of pyproject.toml."""
    root = ROOT / folder
    project = tomllib.loads(
        (ROOT / ("client" if "client" in folder else "") / "pyproject.toml").read_text("utf-8")
    )
    data = project["tool"]["setuptools"]["package-data"][root.name]
    packed = {path for pattern in data for path in root.glob(pattern)}
    files = {path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    modules = {path for path in files if path.suffix == ".py"}

    assert root / "py.typed" in packed
    assert files - modules <= packed
    assert {path.parent for path in modules} == {
        path.parent for path in modules if path.name == "__init__.py"
    }


def test_the_wheel_has_the_profiles_of_deploy():
    """By the link, so that there is one of each."""
    assert sorted((ROOT / "deploy/profiles").glob("*")) == sorted(
        path.resolve() for path in PROFILES.glob("*")
    )


def test_the_citation_has_the_version_of_the_package():
    """And its licence."""
    citation = (ROOT / "CITATION.cff").read_text("utf-8")

    assert f"\nversion: {PROJECT['version']}\n" in citation
    assert f"\nlicense: {PROJECT['license']}\n" in citation
