"""docs/reference/folders.md is what the folders say of themselves."""

import pytest

from docs.render.folders import first_line
from tests.support.pages import ROOT, page

PACKAGES = [
    path
    for top in ("service", "models", "client/src/scoregate")
    for path in (ROOT / top).glob("*/**/__init__.py")
    if path.parents[1].name != "families"  # docs/reference/models.md lists those
]


def test_every_folder_has_its_line():
    """It is the first line of the package, and no folder that is gone has one."""
    rows = {line for line in page("reference/folders.md").splitlines() if line.startswith("| `")}
    folders = {path.parent.relative_to(ROOT): " ".join(first_line(path).split()) for path in PACKAGES}

    assert {f"| `{folder}/` | {line} |" for folder, line in folders.items()} == rows


@pytest.mark.parametrize("top", ["service", "models", "client/src", "demo"])
def test_every_file_says_in_its_first_line_what_it_holds(top):
    silent = [path for path in (ROOT / top).rglob("*.py") if not first_line(path)]

    assert [] == silent
