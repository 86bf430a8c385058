"""The steps of `make gpu`: each fails by itself, and is measured once."""

import pytest

from loadtest.gpu import steps
from loadtest.gpu.results import Results, Row
from loadtest.gpu.steps import LIMIT_S, Step, run


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path / "tiny.jsonl", {"card": "none"})


def measured(name, calls=None, **options):
    """A step that counts its calls."""

    def measure():
        if calls is not None:
            calls.append(name)
        yield Row(name, 1.0, "s")

    return Step(name, measure, **options)


def failing(name, error):
    def measure():
        yield Row("the first of two", 1.0, "s")
        raise error

    return Step(name, measure)


def shown(results, *parts):
    return [(row.what, row.failed, row.note) for part in parts for row in results.of(part)]


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (RuntimeError("CUDA error\nmore"), "RuntimeError: CUDA error"),
        (SystemExit("POST /score: 500"), "SystemExit: POST /score: 500"),
        (ValueError(), "ValueError: ValueError()"),
    ],
)
def test_a_step_that_fails_is_a_red_row_and_the_others_follow(results, error, note, capsys):
    """In its own part and in the next ones; the origin of the error goes to stderr."""
    parts = {
        "limits": lambda: iter([failing("a", error), measured("b")]),
        "drift": lambda: iter([measured("c")]),
    }
    run(parts, results, lambda: None)

    assert [("a", True, note), ("b", False, ""), ("c", False, "")] == shown(results, "limits", "drift")
    assert "Traceback" in capsys.readouterr().err


def test_a_part_whose_steps_cannot_be_made_is_a_red_row(results):
    """Steps before the error are kept."""

    def broken():
        yield measured("a")
        raise KeyError("no such size")

    run({"forward": broken, "drift": lambda: iter([measured("c")])}, results, lambda: None)

    assert [("a", False), ("forward", True), ("c", False)] == [
        one[:2] for one in shown(results, "forward", "drift")
    ]


def test_the_error_of_a_part_is_gone_when_its_steps_can_be_made(results):
    run({"drift": lambda: iter(())["no"]}, results, lambda: None)
    assert [("drift", True)] == [one[:2] for one in shown(results, "drift")]
    run({"drift": lambda: iter([measured("a")])}, results, lambda: None)

    assert [("a", False, "")] == shown(results, "drift")


def test_a_step_is_measured_once_unless_it_failed_or_sums_up_others(results):
    """So a stopped run goes on, and an error is tried again."""
    calls = []
    for _ in range(2):
        part = [measured("a", calls), failing("b", OSError("no")), measured("sum", calls, again=True)]
        run({"limits": lambda part=part: iter(part)}, results, lambda: None)

    assert ["a", "sum", "sum"] == calls


def test_steps_after_the_limit_of_a_part_are_left_for_the_next_run(results):
    """The step that passes the limit is finished; another part has a limit of its own."""
    now = iter([0.0, 0.0, LIMIT_S + 1, 2000.0, 2000.0])
    parts = {"forward": lambda: iter([measured("a"), measured("b")]), "drift": lambda: iter([measured("c")])}
    run(parts, results, lambda: None, clock=lambda: next(now))

    assert results.has("forward", "a")
    assert not results.has("forward", "b")
    assert results.has("drift", "c")
    assert steps.over("b").note.endswith("run again to go on")


def test_memory_is_released_after_each_step(results):
    released = []
    run({"limits": lambda: iter([measured("a"), measured("b")])}, results, lambda: released.append(1))

    assert [1, 1] == released
