"""docs/choosing.md: every metric has a use, and the checks of every half year run."""

import re
import shutil

import pytest

from scoregate.cli.main import main
from scoregate.evaluation.figures import FIGURES
from service.metrics.common.registry import own
from tests.support.pages import fences, rows, section
from tests.unit.client.evaluation.conftest import RELEASED, SMALL

PAGE = "choosing.md"
CHECKS = [line for _, text in fences(PAGE, "sh") for line in text.splitlines()]
CODE = re.compile(r"`(\w+)`")


def metrics() -> set[str]:
    """The metrics of the service."""
    return set(own())


@pytest.mark.parametrize("heading", ["## Which one to take", "## What a metric costs"])
def test_every_metric_has_a_use_and_a_cost(heading):
    """Whoever adds one says what it is for, and what it costs."""
    assert metrics() <= set(CODE.findall(section(PAGE, heading)))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The released tables, and the small ones of the examples."""
    folder = tmp_path_factory.mktemp("choosing") / "tables"
    shutil.copytree(RELEASED, folder)
    shutil.copytree(SMALL, folder, dirs_exist_ok=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("line", CHECKS, ids=[" ".join(line.split()[1:3]) for line in CHECKS])
def test_a_check_of_every_half_year_runs(folder, line, monkeypatch, capsys):
    """As it is printed."""
    name, *arguments = line.split()
    assert "scoregate" == name
    monkeypatch.chdir(folder)
    status = main(arguments)

    assert (0, "") == (status, capsys.readouterr().err)


def test_the_table_of_checks_names_the_commands_that_are_shown():
    """Each of them once."""
    names = {*FIGURES, "calibrate"}
    told = [cells[1].strip("`") for cells in rows(section(PAGE, "## Every half year"))]

    assert sorted(name for name in told if name in names) == sorted(
        name for line in CHECKS for name in line.split() if name in names
    )
