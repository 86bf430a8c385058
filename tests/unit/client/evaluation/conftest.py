"""Tables as files, and the command on them."""

import json

import pytest

from scoregate.cli.main import main
from tests.support.paths import GOLDEN

RELEASED = GOLDEN / "evaluation"


@pytest.fixture
def evaluate(capsys):
    """The command's JSON; its status is 0."""

    def evaluate(*arguments):
        code = main(["evaluate", *map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert (0, "") == (code, err)
        return json.loads(out)

    return evaluate
