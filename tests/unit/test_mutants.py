"""`make mutants`: what it changes, and the tests that it runs, are there."""

import tomllib

import pytest

from tests.support.paths import ROOT

AREAS = tomllib.loads((ROOT / "tests/mutants/areas.toml").read_text("utf-8"))


@pytest.mark.parametrize("name", AREAS)
def test_every_path_of_an_area_leads_to_a_file(name):
    paths = [*AREAS[name]["files"], *AREAS[name]["tests"]]

    assert [] == [path for path in paths if not any(ROOT.glob(path))]
