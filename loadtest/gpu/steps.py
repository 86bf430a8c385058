"""
Steps: the parts of the command, each a series of measurements that fail by themselves.

A step that was measured before is not measured again.  One that raises becomes a red row, and the others
follow.
"""

import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic

from loadtest.gpu.results import Results, Row
from loadtest.gpu.table import line

LIMIT_S = 480  # a part begins no step later; a step that has begun is finished


@dataclass(frozen=True, slots=True)
class Step:
    """
    A measurement.

    Attributes:
        name: within the part.
        measure: returns its rows.
        again: it summarises other steps, and is measured by each run.
    """

    name: str
    measure: Callable[[], Iterable[Row]]
    again: bool = False


Steps = Callable[[], Iterator[Step]]
"""The steps of a part in their order; what several steps need is made by the first of them."""


def run(
    parts: Mapping[str, Steps],
    results: Results,
    release: Callable[[], None],
    clock: Callable[[], float] = monotonic,
) -> None:
    """
    Measure *parts* by name; print each row and add it to *results*.

    Args:
        release: frees memory that a step no longer uses.
    """
    for part, steps in parts.items():
        print(f"{part}:", flush=True)
        began = clock()
        results.forget(part, part)  # an error of the part itself
        for step in every(part, steps):
            if results.has(part, step.name) and not step.again:
                continue
            late = clock() - began > LIMIT_S
            rows = [over(step.name)] if late else measured(step)
            release()
            results.add(part, step.name, rows)
            for row in rows:
                print(f"  {line(row)}", flush=True)


def every(part: str, steps: Steps) -> Iterator[Step]:
    """Yield the steps of a part; if making them fails, a last one that raises the same error."""
    try:
        yield from steps()
    except Exception as exc:
        error = exc

        def fail() -> Iterable[Row]:
            raise error

        yield Step(part, fail)


def measured(step: Step) -> list[Row]:
    """Return the rows of a step; if it fails, one with the error, whose origin goes to stderr."""
    try:
        return [*step.measure()]
    except (Exception, SystemExit) as exc:  # `loadtest` ends a command with it
        traceback.print_exc(file=sys.stderr)
        reason = (str(exc) or repr(exc)).strip().partition("\n")[0]
        return [Row(step.name, note=f"{type(exc).__name__}: {reason}"[:200], failed=True)]


def over(name: str) -> Row:
    """Return the row of a step for which no time is left."""
    return Row(name, note=f"not measured: the part's {LIMIT_S} s were over; run again to go on", failed=True)
