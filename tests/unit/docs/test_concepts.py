"""docs/concepts.md: each term, and the class that bears it."""

import re

import pytest

from tests.support.modules import types_of
from tests.support.pages import page

TERM = re.compile(r"^\* \*\*(?P<term>[^*]+)\*\*(?: \(`(?P<kind>\w+)`\))?: (?P<meaning>.+)$", re.MULTILINE)
TERMS = [match.groupdict() for match in TERM.finditer(page("concepts.md"))]
NAMED = set(re.findall(r"\(`([A-Z]\w+)`\)", page("concepts.md")))
PACKAGES = {package: types_of(package) for package in ("models", "service", "scoregate")}


def test_every_entry_of_the_page_is_a_term_with_its_meaning():
    """Each stands once."""
    assert len(TERMS) == page("concepts.md").count("\n* ")
    assert len(TERMS) == len({each["term"] for each in TERMS})


@pytest.mark.parametrize("name", sorted(NAMED))
def test_a_class_of_a_term_exists_and_stands_for_that_thing_alone(name):
    """Some package defines it, and none gives its name to a second type."""
    found = {package: types[name] for package, types in PACKAGES.items() if name in types}

    assert found
    assert {} == {package: modules for package, modules in found.items() if len(modules) > 1}


def test_a_class_with_the_name_of_a_term_is_named_beside_it():
    """So that no class is called `Slot` or `Role` and is something else."""
    spelled = {"".join(map(str.capitalize, re.split(r"[ -]", each["term"]))): each["kind"] for each in TERMS}
    found = {name for name in spelled if any(name in types for types in PACKAGES.values())}

    assert found == {name for name in found if spelled[name] == name}
