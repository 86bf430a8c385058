"""The file of results of `scoregate batch`, before a run goes on with it."""

from pathlib import Path

import pytest

from tests.unit.client.cli.served import ROWS, Service, lines, metric

OUT = ("batch", "rows.jsonl", "-o", "out.jsonl", "-m", "vqascore")


@pytest.fixture
def service():
    """A service of one metric."""
    return Service("clip@1", metrics={"vqascore": metric()})


@pytest.mark.parametrize("after_ours", [False, True])
@pytest.mark.parametrize("data", [b"notes", b'{"my": "settings"}', b'{"row": 1, "name": "x', bytes(9)])
def test_what_does_not_begin_as_a_result_is_never_cut_off(command, service, data, after_ours):
    """It may be any file, although its last line has no end."""
    if after_ours:
        command(service, *OUT)
        data = Path("out.jsonl").read_bytes() + data
    Path("out.jsonl").write_bytes(data)
    status, _, err = command(service, *OUT)

    assert 2 == status
    assert err.rstrip().endswith("is no result of `scoregate batch`: name another file")
    assert data == Path("out.jsonl").read_bytes()


@pytest.mark.parametrize("whole", [0, 3])
def test_a_result_that_is_torn_is_scored_again(command, service, whole):
    """Also if it is the first one."""
    command(service, *OUT)
    before = Path("out.jsonl").read_bytes().splitlines(keepends=True)
    Path("out.jsonl").write_bytes(b"".join(before[:whole]) + before[whole][:50])
    status, _, err = command(service, *OUT)

    assert 0 == status
    assert f"{ROWS - whole} were requested" in err
    assert ROWS == len(lines(Path("out.jsonl")))
