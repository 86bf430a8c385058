"""docs/errors.md: the tree of errors, with its codes and statuses."""

from service.web.openapi import tree
from tests.support.pages import page, rows


def test_every_error_code_is_documented_with_its_status_and_no_other():
    """The table of docs/errors.md is the tree of service/core/errors.py."""
    documented = [
        (cells[0].strip("`"), int(cells[1])) for cells in rows(page("errors.md")) if cells[1].isdigit()
    ]

    assert {(error.code, error.status) for error in tree()} == set(documented)
    assert len(set(documented)) == len(documented)


def test_every_error_has_a_code_of_its_own():
    """A client can tell any two errors apart by their code."""
    codes = [error.code for error in tree()]

    assert sorted(set(codes)) == sorted(codes)
