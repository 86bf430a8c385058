"""docs/architecture.md: its table of folders is what the folders say of themselves."""

import ast

import pytest

from tests.support.pages import ROOT, section
from tests.support.paths import parsed

PACKAGES = [
    path
    for top in ("service", "models", "client/src/scoregate")
    for path in (ROOT / top).glob("*/**/__init__.py")
    if path.parents[1].name != "families"  # docs/reference/models.md lists those
]


def first_line(path):
    """Return the first line of a module's docstring."""
    return (ast.get_docstring(parsed(path)) or "").partition("\n")[0]


def test_every_folder_has_its_line_in_the_architecture():
    """It is the first line of the package, and no folder that is gone has one."""
    table, _, _ = section("architecture.md", "## Folders").partition("Other folders")
    rows = {line for line in table.splitlines() if line.startswith("| `")}
    folders = {path.parent.relative_to(ROOT): first_line(path) for path in PACKAGES}

    assert {f"| `{folder}/` | {line} |" for folder, line in folders.items()} == rows


@pytest.mark.parametrize("top", ["service", "models", "client/src", "demo"])
def test_every_file_says_in_its_first_line_what_it_holds(top):
    silent = [path for path in (ROOT / top).rglob("*.py") if not first_line(path)]

    assert [] == silent
