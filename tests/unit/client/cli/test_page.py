"""docs/reference/cli.md: its exit statuses are those of the code."""

import re

from scoregate.cli import arguments
from tests.support.pages import section

PAGE = "reference/cli.md"


def test_every_exit_status_is_listed():
    """With the numbers of the code."""
    listed = {
        int(status) for status in re.findall(r"^\* (\d+): ", section(PAGE, "## Every command"), re.MULTILINE)
    }

    statuses = (arguments.OK, arguments.NO_SCORE, arguments.USAGE, arguments.UNREACHABLE)

    assert {*statuses, arguments.INTERRUPTED_STATUS} == listed
