"""When a rejected request may come again: one function has the seconds, and one the header."""

import ast
from pathlib import Path

import pytest

from service.core.errors import LaneFull, QuotaExceeded
from service.core.retry_after import QueuedWork, Shortage, UsedQuota, expected_wait_s, header_value

SERVICE = Path(__file__).parents[3] / "service"


@pytest.mark.parametrize(
    ("cause", "seconds"),
    [
        (Shortage.BYTES, 2.0),
        (Shortage.PLACES, 5.0),
        (Shortage.MODEL, 10.0),
        (QueuedWork(3.5), 3.5),
        (UsedQuota(missing=30, per_s=2.0), 15.0),
    ],
)
def test_the_wait_follows_from_what_was_lacking(cause, seconds):
    """A prediction where there is one, else a typical time."""
    assert seconds == expected_wait_s(cause) == LaneFull(retry_after_s=expected_wait_s(cause)).retry_after_s


def test_an_error_has_no_wait_if_no_work_is_before_the_request():
    """To wait would not help."""
    assert LaneFull(retry_after_s=expected_wait_s(QueuedWork(0.0))).retry_after_s is None


def test_the_header_has_whole_seconds_with_jitter_unless_the_wait_is_exact():
    """One second at least; a dialect limits the wait before the jitter."""
    assert {"1", "2"} >= {header_value(LaneFull()) for _ in range(50)}
    jittered = {int(header_value(LaneFull(retry_after_s=100.0))) for _ in range(200)}
    assert (True, True, True) == (min(jittered) >= 100, max(jittered) <= 125, len(jittered) > 1)
    assert {"100"} == {header_value(QuotaExceeded(retry_after_s=99.5)) for _ in range(50)}
    assert "30" == header_value(QuotaExceeded(retry_after_s=99.5), most_s=30.0)


def test_no_other_file_computes_the_seconds():
    """Each error of the service that has a wait gets it from `expected_wait_s`."""
    found = []
    for path in SERVICE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {
            target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign) and is_wait(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        found += [
            f"{path.relative_to(SERVICE)}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.keyword) and node.arg == "retry_after_s"
            if not is_wait(node.value) and not (isinstance(node.value, ast.Name) and node.value.id in names)
        ]
    assert [] == found


def is_wait(node):
    """Return True for a call of `expected_wait_s`."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "expected_wait_s"
    )
