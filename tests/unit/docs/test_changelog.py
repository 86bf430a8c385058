"""CHANGELOG.md: its version is the package's."""

import re
import tomllib

import service
from tests.support.paths import ROOT


def test_one_version_is_told_everywhere():
    """The changelog's top entry, the package and pyproject.toml agree."""
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    top = re.search(r"^## \[(.+?)\]", changelog, re.MULTILINE)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

    assert top is not None
    assert {top[1]} == {service.__version__, project["version"]}
