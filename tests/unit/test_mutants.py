"""`make mutants`: what it changes, the tests that it runs, and the changes that count as equivalent."""

import tomllib
from itertools import chain

import pytest

from tests.support.paths import ROOT

FOLDER = ROOT / "tests/mutants"
AREAS = tomllib.loads((FOLDER / "areas.toml").read_text("utf-8"))
EQUIVALENT = tomllib.loads((FOLDER / "equivalent.toml").read_text("utf-8"))["equivalent"]


@pytest.mark.parametrize("name", AREAS)
def test_every_path_of_an_area_leads_to_a_file(name):
    paths = chain.from_iterable(AREAS[name].get(key, ()) for key in ("files", "except", "tests"))

    assert [] == [path for path in paths if not any(ROOT.glob(path))]


def test_an_equivalent_change_is_one_of_a_line_that_is_there():
    """Entries of lines that changed or went would be taken for facts about other code."""
    stale = [each for each in EQUIVALENT if each["before"] not in joined(each["file"])]

    assert [] == stale


def joined(path):
    """The lines of a file without their indents, as an entry has them."""
    return " ".join(map(str.strip, (ROOT / path).read_text("utf-8").splitlines()))


def test_an_equivalent_change_is_listed_once():
    changes = [(each["file"], each["before"], after) for each in EQUIVALENT for after in each["after"]]

    assert len(set(changes)) == len(changes)
