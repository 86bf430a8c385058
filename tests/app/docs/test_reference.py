"""docs/reference: pages that are what the code declares, and say something of each declaration."""

import pytest

from docs.render import PAGES, path_of, rendered
from service.web.openapi import tree
from tests.support.pages import rows

SILENT = {"api", "cli", "dialects", "formats", "metrics", "models", "profiles"}  # cells may be empty in these


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_is_what_the_code_declares(name):
    """A change of a declaration changes its page in the same commit."""
    assert rendered(name) == path_of(name).read_text("utf-8"), "write it anew: make reference"


@pytest.mark.parametrize("name", PAGES)
def test_no_page_is_left_without_a_renderer(name):
    """Each file of the folder is rendered."""
    assert {path_of(each) for each in PAGES} == {*path_of(name).parent.glob("*")}


@pytest.mark.parametrize("name", [name for name in PAGES if name not in SILENT])
def test_every_setting_error_and_instrument_has_a_meaning(name):
    """Which its declaration has."""
    heads, *table = rows(path_of(name).read_text("utf-8"))
    column = heads.index("meaning")

    assert [] == [cells for cells in table if len(cells) == len(heads) and not cells[column]]


def test_every_error_has_a_code_of_its_own():
    """A client can tell any two errors apart by their code."""
    codes = [error.code for error in tree()]

    assert sorted(set(codes)) == sorted(codes)
