"""The pages of figures and of benchmarks: each command prints what is shown, and has its section."""

import re
import shutil

import pytest

from scoregate.bench import BENCHMARKS
from scoregate.cli.main import main
from scoregate.evaluation.figures import FIGURES
from tests.support.pages import fences, page
from tests.unit.client.evaluation.conftest import RELEASED, SMALL

pytestmark = pytest.mark.slow

PAGES = {"reference/figures.md": FIGURES, "reference/benchmarks.md": BENCHMARKS}
EXAMPLES = {name: [text for _, text in fences(name, "console")] for name in PAGES}
DECIMALS = re.compile(r"-?\d+\.\d+")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The released tables, and the small files of the examples."""
    folder = tmp_path_factory.mktemp("evaluation") / "tables"
    shutil.copytree(RELEASED, folder)
    shutil.copytree(SMALL, folder, dirs_exist_ok=True)
    return folder


@pytest.mark.parametrize(
    "example", [text for each in EXAMPLES.values() for text in each], ids=lambda text: text.split()[3]
)
def test_the_command_prints_what_the_page_shows(folder, example, monkeypatch, capsys):
    """To the last digit but one."""
    command, shown = example.removeprefix("$ ").split("\n", 1)
    name, *arguments = command.split()
    assert "scoregate" == name
    monkeypatch.chdir(folder)
    status = main(arguments)
    out, err = capsys.readouterr()

    assert (0, "") == (status, err)
    assert DECIMALS.sub("#", shown).split() == DECIMALS.sub("#", out).split()
    numbers = [list(map(float, DECIMALS.findall(text))) for text in (shown, out)]
    assert numbers[0] == pytest.approx(numbers[1], abs=1.01e-4)


@pytest.mark.parametrize("name", PAGES)
def test_every_figure_and_benchmark_has_its_section_and_its_example(name):
    """And no other command."""
    sections = re.findall(r"^## (\w+)$", page(name), re.MULTILINE)

    assert set(PAGES[name]) == {title for title in sections if title.islower()}
    assert set(PAGES[name]) == {text.split()[3] for text in EXAMPLES[name]}


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (name, text)
        for name in ("evaluation.md", "benchmarks.md")
        for file, text in fences(name, "python")
        if not file
    ],
)
def test_the_python_example_runs(folder, name, code, monkeypatch, capsys):
    """It prints what its comments say."""
    monkeypatch.chdir(folder)
    exec(compile(code, name, "exec"), {"__name__": "__main__"})

    printed = capsys.readouterr().out.splitlines()
    assert printed
    assert [text.partition("# ")[2] for text in code.splitlines() if "print(" in text] == printed
