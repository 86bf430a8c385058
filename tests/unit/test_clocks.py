"""Clocks of tests: injected, and never patched."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "time", "time_ns", "sleep", "clock"}
OF_OTHERS = ("tqdm.",)  # packages that take no clock
SETS = re.compile(rf"setattr|\b(loop|time|asyncio)\.({'|'.join(CLOCKS)})\s*=")  # stands in what sets one


def patched_clocks(source: str) -> Iterator[str]:
    """Yield the clocks that *source* sets: by `setattr` of a name or an attribute, or by an assignment."""
    if not SETS.search(source):
        return  # most files: parsing them took most of the time
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(ast.Attribute(attr="setattr"), [ast.Constant(str(path)), _]):
                name = path.rpartition(".")[2]
            case ast.Call(ast.Attribute(attr="setattr"), [target, ast.Constant(str(name)), _]):
                path = f"{ast.unparse(target)}.{name}"
            case ast.Assign([ast.Attribute(ast.Name(owner), name)]) if owner in ("loop", "time", "asyncio"):
                path = f"{owner}.{name}"
            case _:
                continue
        if name in CLOCKS and not path.startswith(OF_OTHERS):
            yield path


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('patch.setattr(module, "monotonic", lambda: 0.0)', ["module.monotonic"]),
        (
            'patch.setattr("scoregate.connection.asyncio.sleep", sleep)',
            ["scoregate.connection.asyncio.sleep"],
        ),
        ("loop.time = lambda: 0.0", ["loop.time"]),
        ('patch.setattr("tqdm.std.time", lambda: 0.0)', []),
        ('patch.setattr(module, "MAX_BYTES", 10)', []),
        ("model.sleep = slept.append", []),
    ],
)
def test_a_clock_that_is_patched_is_found(source, found):
    """By either form of `setattr`, and by an assignment to the loop or a module."""
    assert found == [*patched_clocks(source)]


def test_no_test_patches_a_clock():
    """A test gives an object its clock, or sets that of its loop forward (`tests/support/leaps.py`)."""
    found = {
        str(file.relative_to(TESTS)): clocks
        for file in TESTS.rglob("*.py")
        if file != Path(__file__) and (clocks := [*patched_clocks(file.read_text("utf-8"))])
    }

    assert {} == found
