"""docs/client.md and the table of methods in docs/reference/client.md."""

import re

from scoregate import Client
from tests.support.pages import fences, named_rows, page


def test_every_method_is_in_the_table():
    """And no other."""
    cells = [row[0] for row in named_rows(page("reference/client.md"))]
    named = {name for cell in cells for name in re.findall(r"`(\w+)\(", cell)}
    methods = {name for name in vars(Client) if name[0] != "_"} - {"base_url", "strict"}

    assert methods == named
    assert len(fences("client.md", "python")) >= 6
