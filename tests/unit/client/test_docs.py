"""docs/client.md, the table of methods in docs/reference/client.md, and what pages use of the package."""

import re

import scoregate
from scoregate import Client
from tests.support.pages import PAGES, fences, named_rows, page


def test_every_method_is_in_the_table():
    """And no other."""
    cells = [row[0] for row in named_rows(page("reference/client.md"))]
    named = {name for cell in cells for name in re.findall(r"`(\w+)\(", cell)}
    methods = {name for name in vars(Client) if name[0] != "_"} - {"base_url", "strict"}

    assert methods == named
    assert len(fences("client.md", "python")) >= 6


def test_a_class_or_function_of_the_package_that_a_page_names_is_exported():
    """By `__all__`, for linters and type checkers, and by `dir`, for a notebook's completion."""
    names = re.compile(r"\bscoregate\.([A-Z]\w*|\w+(?=\())")
    named = {name for path in PAGES for name in names.findall(path.read_text("utf-8"))}

    assert {"Accept", "load", "versus"} <= named
    assert set() == named - {*scoregate.__all__}
    assert set() == {*scoregate.__all__} - {*dir(scoregate)}
