"""Tables as files, and the command on them."""

import json
import sys

import pytest

import scoregate
from scoregate.cli import main as command
from scoregate.cli.main import main
from tests.support.paths import GOLDEN

RELEASED = GOLDEN / "evaluation"
SMALL = GOLDEN / "examples"  # small files of the pages of figures and of benchmarks


@pytest.fixture
def evaluate(capsys):
    """The command's JSON; its status is 0."""

    def evaluate(*arguments):
        code = main(["evaluate", *map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert (0, "") == (code, err)
        return json.loads(out)

    return evaluate


@pytest.fixture
def without(monkeypatch):
    """Imports the evaluation anew, without a package; afterwards all modules are as before."""

    def without(package):
        ours = ("scoregate.evaluation", "scoregate.cli.evaluate", "scoregate.replay")
        for name in [name for name in sys.modules if name.startswith(ours)]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.delattr(scoregate, "evaluation", raising=False)  # which an import sets
        monkeypatch.setitem(sys.modules, package, None)
        command.parser.cache_clear()  # it is of commands that are imported

    yield without
    command.parser.cache_clear()
