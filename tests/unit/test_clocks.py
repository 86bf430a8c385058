"""Clocks of tests: injected, and never patched."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "time", "time_ns", "clock", "_clock", "now", "_now"}
OWNERS_OF_SLEEP = ("loop", "time", "asyncio")  # a model's is another thing
OF_OTHERS = ("tqdm.",)  # packages that take no clock
SETTERS = re.compile(r"(.*\.)?(setattr|__setattr__|patch|patch\.object)")
NAMES = f"({'|'.join(CLOCKS | {'sleep'})})"
SETS = re.compile(rf"""[."']{NAMES}["']|\.{NAMES}\s*[^\s\w(.]|= \S+\(.*clock""")  # stands in what sets one


def patched_clocks(source: str) -> Iterator[str]:
    """
    Yield the clocks that *source* sets on what was made without them.

    By a function, by an assignment to an attribute, or by one of a part that has a clock.  An object that
    sets its own, as `self`, is not meant.
    """
    if not SETS.search(source):
        return  # most files: parsing them took most of the time
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(function) if SETTERS.fullmatch(ast.unparse(function)):
                path = path_of(node)
            case ast.Attribute(ast.Name("self"), _):
                continue
            case ast.Attribute(_, _, ast.Store()):
                path = ast.unparse(node)
            case ast.Assign([ast.Attribute(ast.expr() as owner, _) as part], value) if has_clock(value):
                path = "" if ast.unparse(owner) == "self" else f"{ast.unparse(part)}.clock"
            case _:
                continue
        owner, _, name = path.rpartition(".")
        sleeps = name == "sleep" and (isinstance(node, ast.Call) or owner.endswith(OWNERS_OF_SLEEP))
        if (name in CLOCKS or sleeps) and not path.startswith(OF_OTHERS):
            yield path


def path_of(call: ast.Call) -> str:
    """Return the attribute that a *call* of `setattr` or `patch` sets, or its path."""
    given = [
        *call.args[:2],
        *(each.value for each in call.keywords if each.arg in ("target", "attribute", "name")),
    ]
    match given:
        case [ast.Constant(str(path)), *_]:
            return path
        case [owner, ast.Constant(str(name))]:
            return f"{ast.unparse(owner)}.{name}"
    return ""


def has_clock(value: ast.expr) -> bool:
    """Return True for a call that gets a clock."""
    if not isinstance(value, ast.Call):
        return False
    names = {each.arg for each in value.keywords}
    return not CLOCKS.isdisjoint(names | {ast.unparse(each) for each in value.args})


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('patch.setattr(module, "monotonic", lambda: 0.0)', ["module.monotonic"]),
        (
            'patch.setattr("scoregate.connection.asyncio.sleep", sleep)',
            ["scoregate.connection.asyncio.sleep"],
        ),
        ('patch.setattr(module, name="monotonic", value=f)', ["module.monotonic"]),
        ('patch.setattr(target=module, name="monotonic", value=f)', ["module.monotonic"]),
        ('setattr(module, "monotonic", f)', ["module.monotonic"]),
        ('object.__setattr__(backend, "clock", f)', ["backend.clock"]),
        ('with mock.patch("service.web.keys.monotonic", f): pass', ["service.web.keys.monotonic"]),
        ('with patch.object(module, "monotonic", f): pass', ["module.monotonic"]),
        ("loop.time = lambda: 0.0", ["loop.time"]),
        ("module.asyncio.sleep = slept", ["module.asyncio.sleep"]),
        ("keys.time = f", ["keys.time"]),
        ("served.clock = lambda: 0.0", ["served.clock"]),
        ("pool._clock: Clock = Clock()", ["pool._clock"]),
        ("before, pool.clock = pool.clock, clock", ["pool.clock"]),
        ("client._inner._breaker = Breaker(clock)", ["client._inner._breaker.clock"]),
        ("served.keys = KeyFile(file, clock=lambda: 0.0)", ["served.keys.clock"]),
        ('patch.setattr("tqdm.std.time", lambda: 0.0)', []),
        ('patch.setattr(module, "MAX_BYTES", 10)', []),
        ('patch.setattr(module, "kind", "time")', []),
        ("model.sleep = slept.append", []),
        ("self.now, self.quotas = 0.0, Quotas(clock)", []),
        ("self.quotas = Quotas(clock)", []),
        ("quotas, began = Quotas(clock), clock.now", []),
        ("clock.set(loop.time())", []),
    ],
)
def test_a_clock_that_is_patched_is_found(source, found):
    """By each form of `setattr` and `patch`, by an assignment, and in a part that replaces another."""
    assert found == [*patched_clocks(source)]


def test_no_test_patches_a_clock():
    """A test gives an object its clock, or sets that of its loop forward (`tests/support/leaps.py`)."""
    found = {
        str(file.relative_to(TESTS)): clocks
        for file in TESTS.rglob("*.py")
        if file != Path(__file__) and (clocks := [*patched_clocks(file.read_text("utf-8"))])
    }

    assert {} == found
