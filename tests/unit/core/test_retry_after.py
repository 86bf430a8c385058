"""When a rejected request may come again: one function has the seconds, one writes each form of them."""

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
    for path, tree in modules_of_waits():
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


def modules_of_waits():
    """Yield each module in which a wait stands: parsing the others would take most of the time."""
    for path in SERVICE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "Retry-After" in text or "retry_after_s" in text:
            yield path, ast.parse(text)


def is_wait(node):
    """Return True for a call of `expected_wait_s`."""
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "expected_wait_s"
    )


def test_one_function_writes_the_header_and_one_the_field():
    """For all formats of errors; the description of the header in OpenAPI is a text."""
    found = {
        (text, path.relative_to(SERVICE).as_posix(), function.name)
        for path, tree in modules_of_waits()
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for text in written_by(function)
    }

    assert {
        ("Retry-After", "web/problems.py", "headers_of"),
        ("retry_after_s", "web/problems.py", "add_wait"),
    } == found


def written_by(function):
    """Yield each form of the wait to which *function* gives a value: in a dict, or by an assignment."""
    for node in ast.walk(function):
        match node:
            case ast.Dict(keys, values):
                pairs = [*zip(keys, values, strict=True)]
            case ast.Assign([ast.Subscript(_, key)], value):
                pairs = [(key, value)]
            case _:
                continue
        for key, value in pairs:
            match key, value:
                case ast.Constant("Retry-After" | "retry_after_s" as text), value if not isinstance(
                    value, ast.Constant
                ):
                    yield text
