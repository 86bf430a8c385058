"""docs/reference: pages that are what the code declares, and say something of each declaration."""

import re

import pytest

from docs.render import FOLDER, PAGES, path_of, rendered
from service.web.openapi import tree
from tests.support.pages import rows

# First heads of tables whose rows are declarations; an answer's field may speak for itself.
DECLARED = ("argument", "code", "default", "option", "Prometheus metric", "setting")


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_is_what_the_code_declares(name):
    """A change of a declaration changes its page in the same commit."""
    assert rendered(name) == path_of(name).read_text("utf-8"), "write it anew: make reference"


def test_no_page_of_the_folder_is_without_a_renderer():
    """Each file is rendered."""
    assert {*map(path_of, PAGES)} == {*FOLDER.iterdir()}


@pytest.mark.parametrize("name", PAGES)
def test_every_field_setting_option_argument_and_error_has_a_meaning(name):
    """Which its declaration has."""
    tables = [list(rows(part)) for part in path_of(name).read_text("utf-8").split("\n\n")]
    declared = [table for table in tables if table and {*table[0]} & {*DECLARED}]

    assert [] == [
        row
        for heads, *table in declared
        for row in table
        if "meaning" not in heads or not row[heads.index("meaning")]
    ]


def test_every_error_has_a_code_of_its_own():
    """A client can tell any two errors apart by their code."""
    codes = [error.code for error in tree()]

    assert sorted(set(codes)) == sorted(codes)


def test_every_command_has_an_example():
    """That of its `--help`; the heading of the server's commands is none."""
    parts = re.split(r"^#{2,3} ", path_of("cli").read_text("utf-8"), flags=re.MULTILINE)[1:]

    assert ["scoregate-server"] == [part.partition("\n")[0] for part in parts if "\n```" not in part]
