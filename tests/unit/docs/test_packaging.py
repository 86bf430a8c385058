"""pyproject.toml, the locks, and what people are told to install."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PINNED = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "requirements.lock").read_text("utf-8"), re.MULTILINE)
LOCK = {canonicalize_name(name): version for name, version in PINNED}
EXTRAS = [each for extra in ("redis", "ocr", "otel") for each in PROJECT["optional-dependencies"][extra]]
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


def test_nobody_is_told_to_install_a_name_that_is_not_ours():
    """`scoregate-server` is not on the public index; whoever takes the name there could run code here."""
    sources = [f"{folder}/**/*.py" for folder in ("service", "models", "demo", "loadtest")]
    patterns = ["*.md", "Makefile", "docs/**/*.md", "deploy/**/*.toml", *sources]
    wrong = re.compile(r'install[^\n`]*\bscoregate-server|dependencies = \[[^\]]*"scoregate-server')
    files = [path for pattern in patterns for path in ROOT.glob(pattern)]

    assert files
    assert [] == [str(path) for path in files if wrong.search(path.read_text("utf-8"))]


def test_no_page_installs_the_client_by_its_name():
    """It is not on the public index either: a page installs the folder of a checkout."""
    wrong = re.compile(r"install[^\n`]*\bscoregate-client")
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("client/*.md")]

    assert pages
    assert [] == [str(path) for path in pages if wrong.search(path.read_text("utf-8"))]


def test_the_citation_has_the_version_of_the_package():
    """And its licence."""
    citation = (ROOT / "CITATION.cff").read_text("utf-8")

    assert f"\nversion: {PROJECT['version']}\n" in citation
    assert f"\nlicense: {PROJECT['license']}\n" in citation
