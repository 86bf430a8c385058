"""The command `scoregate bench`."""

import json

import pytest

from scoregate.cli.main import main


@pytest.fixture
def bench(capsys):
    """The command's JSON; its status is 0."""

    def bench(*arguments):
        code = main(["bench", *map(str, arguments), "--json"])
        out, err = capsys.readouterr()
        assert (0, "") == (code, err)
        return json.loads(out)

    return bench
