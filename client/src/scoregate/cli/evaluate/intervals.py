"""Intervals of figures, differences of metrics or generators, and the caution about few rows."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from scoregate.cli.evaluate.outcome import count

if TYPE_CHECKING:
    from scoregate.evaluation.bootstrap import Drawn, Sample

DRAWINGS = 1000  # of a bootstrap
FEW = 30  # rows, below which a figure says little


def add_bootstrap(parser: argparse.ArgumentParser) -> None:
    """Declare intervals."""
    add = parser.add_argument
    what = "intervals and p-values from N drawings, 0 for none (default %(default)s)"
    add("--bootstrap", type=count, default=DRAWINGS, metavar="N", help=what)
    add("--seed", type=count, default=0, help="of the drawings (default 0)")


def drawings(arguments: argparse.Namespace, sample: "Sample") -> "Drawn | None":
    """Return the bootstrap of a sample; None without intervals."""
    from scoregate.evaluation.bootstrap import drawn

    return drawn(sample, arguments.bootstrap, arguments.seed) or None


def interval_of(arguments: argparse.Namespace, sample: "Sample") -> dict[str, Any]:
    """Return the intervals of a sample's figures, below their key; empty without them."""
    from scoregate.evaluation.bootstrap import interval

    drawn = drawings(arguments, sample)
    return {"interval": interval(drawn)} if drawn else {}


def compared(
    arguments: argparse.Namespace,
    found: Mapping[str, Mapping[Any, Any]],
    sample_of: "Callable[[Mapping[Any, Any]], Sample]",
    what: str,
) -> dict[str, Any]:
    """
    Return the differences of each two of *found*, and how many entries they are computed on.

    These are the entries that all of them have.  *what* is the word for one.
    """
    if len(found) < 2:
        return {}
    from scoregate.evaluation.bootstrap import differences

    common = set.intersection(*map(set, found.values()))
    content = {"compared": len(common), **caution(len(common), what)}
    if not common:
        return content
    of_common = {name: sample_of({key: each[key] for key in common}) for name, each in found.items()}
    drawn = {name: (sample.whole, drawings(arguments, sample) or {}) for name, sample in of_common.items()}
    apart = [asdict(each) for each in differences(drawn)]
    return content | ({"differences": apart} if apart else {})


def caution(rows: int, what: str = "row") -> dict[str, str]:
    """Return the caution that figures are of few *rows*, if so."""
    return {"caution": f"{rows} {what}{'s' * (rows != 1)}, fewer than {FEW}"} if rows < FEW else {}
