"""docs/cli.md and docs/report.md: each command prints what the page shows; the tables name what there is."""

import re
import shutil
import subprocess

import pytest

from demo.samples import FOLDER
from scoregate.cli import exits
from scoregate.cli.main import COMMANDS
from service.settings.load import DEMO_PROFILE
from tests.client.cli.conftest import COMMAND
from tests.docs.packages import files_of, served
from tests.docs.pages import fences, page, rows, section

PAGE = "cli.md"
PAGES = (PAGE, "report.md")
DEMO = re.compile(r"warning: .*demo model")  # the page says that these lines are left out
DECIMALS = re.compile(r"-?\d+\.\d+")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The samples, and the files that the pages show; a command finds what those before it wrote."""
    folder = tmp_path_factory.mktemp("page") / "samples"
    shutil.copytree(FOLDER, folder)
    for name, text in [file for each in PAGES for file in files_of(each).items()]:
        (folder / name).write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The address of the demo models."""
    with served(tmp_path_factory.mktemp("demo"), DEMO_PROFILE.read_text("utf-8")) as client:
        yield str(client.base_url)


@pytest.mark.integration
@pytest.mark.parametrize("name", PAGES)
def test_each_command_prints_what_the_page_shows(demo, folder, name):
    """In the order of the page; decimals may differ by little from one machine to the next."""
    examples = [text for _, text in fences(name, "console")]
    assert examples
    for example in examples:
        commands = re.findall(r"^\$ (.*)$", example, re.MULTILINE)
        printed = "".join(f"$ {command}\n{output(command, demo, folder)}" for command in commands)

        assert DECIMALS.sub("#", example).split() == DECIMALS.sub("#", printed).split()
        shown, found = (list(map(float, DECIMALS.findall(text))) for text in (example, printed))
        assert shown == pytest.approx(found, rel=0.05, abs=0.01)


def output(command, demo, folder):
    """What a command of the page prints, on stdout and then on stderr."""
    environment = f"SCOREGATE_BASE_URL={demo}", f"PATH={COMMAND.parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["env", *environment, "bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )
    assert 0 == done.returncode, done.stderr
    said = [line for line in done.stderr.splitlines(keepends=True) if not DEMO.match(line)]
    return done.stdout + "".join(said)


def test_every_command_has_its_section():
    """In the order in which `--help` lists them."""
    assert list(COMMANDS) == re.findall(r"^## (\w+)$", page(PAGE), re.MULTILINE)


def test_every_exit_status_is_listed():
    """With the numbers of the code."""
    listed = {int(cells[0]) for cells in rows(section(PAGE, "## Exit status")) if cells[0].isdigit()}

    assert {value for value in vars(exits).values() if isinstance(value, int)} == listed
