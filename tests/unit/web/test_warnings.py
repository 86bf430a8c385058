"""What an answer warns of: a sentence for people, and at the same place a code for programs."""

from service.observability.notes import Code
from tests.support.pages import named_rows, section


def test_every_code_is_documented_and_no_other():
    """In docs/api.md, with what it means."""
    documented = {cells[0].strip("`"): cells[1] for cells in named_rows(section("api.md", "### Warnings"))}

    assert {*Code} == documented.keys()
    assert all(documented.values())
