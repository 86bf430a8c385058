"""The page of the command, docs/report.md and two guides: each command prints what they show."""

import re
import shlex
import shutil
import subprocess

import pytest

from demo.samples import FOLDER
from tests.process.client.cli.conftest import COMMAND
from tests.support.packages import files_of
from tests.support.pages import fences

PAGES = ("reference/cli.md", "report.md", "guides/compare-generators.md", "guides/million-pictures.md")
LEFT_OUT = re.compile(r"warning: .*demo model|\d+ pictures? in ")  # the page says that it lacks these lines
REJECTING = "decide"  # one of the page's pictures is rejected, so the status is 1
DECIMALS = re.compile(r"-?\d+\.\d+")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The samples, and the files that the pages show; a command finds what those before it wrote."""
    folder = tmp_path_factory.mktemp("page") / "samples"
    shutil.copytree(FOLDER, folder)
    for name, text in [file for each in PAGES for file in files_of(each).items()]:
        (folder / name).write_text(text, "utf-8")
    return folder


@pytest.fixture
def output(demo_service, folder, run, monkeypatch):
    """What a command of the page prints, on stdout and then on stderr; only a pipe takes a shell."""
    monkeypatch.setenv("SCOREGATE_BASE_URL", demo_service.url)
    monkeypatch.setenv("PATH", f"{COMMAND.parent}:/usr/bin:/bin")
    monkeypatch.chdir(folder)

    def output(command):
        name, *words = shlex.split(command)
        assert "scoregate" == name
        done = piped(command) if "|" in words else run(*words)
        assert (words[0] == REJECTING) == done.returncode, done.stderr
        said = [line for line in done.stderr.splitlines(keepends=True) if not LEFT_OUT.match(line)]
        return done.stdout + "".join(said)

    return output


def piped(command):
    shell = ["bash", "-o", "pipefail", "-c", command]
    return subprocess.run(shell, capture_output=True, encoding="utf-8", timeout=120)


@pytest.mark.parametrize("name", PAGES)
def test_each_command_prints_what_the_page_shows(output, name):
    """In the order of the page; decimals may differ by little from one machine to the next."""
    examples = [text for _, text in fences(name, "console")]
    assert examples
    for example in examples:
        commands = re.findall(r"^\$ (.*)$", example, re.MULTILINE)
        printed = "".join(f"$ {command}\n{output(command)}" for command in commands)

        assert DECIMALS.sub("#", example).split() == DECIMALS.sub("#", printed).split()
        shown, found = (list(map(float, DECIMALS.findall(text))) for text in (example, printed))
        assert shown == pytest.approx(found, rel=0.05, abs=0.01)
