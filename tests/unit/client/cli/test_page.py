"""docs/cli.md: its sections and tables name what there is."""

import re

from scoregate.cli import arguments
from scoregate.cli.main import COMMANDS
from tests.support.pages import page, rows, section

PAGE = "cli.md"


def test_every_command_has_its_section():
    """In the order in which `--help` lists them."""
    assert list(COMMANDS) == re.findall(r"^## (\w+)$", page(PAGE), re.MULTILINE)


def test_every_exit_status_is_listed():
    """With the numbers of the code."""
    listed = {int(cells[0]) for cells in rows(section(PAGE, "## Exit status")) if cells[0].isdigit()}

    assert {value for value in vars(arguments).values() if isinstance(value, int)} == listed
