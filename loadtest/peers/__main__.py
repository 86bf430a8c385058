"""
`python -m loadtest.peers`: compare the service with its peers, row by row.

Sets up missing environments in `build/peers/`, measures, keeps every run in `build/peers.json`, prints the
table in Markdown and plots it to `build/peers.png`.  Rows that are not measured keep their last figures.
Exits 1 if a measured row misses its threshold.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import date

from loadtest import report
from loadtest.peers.peer import CLIP, FOLDER, PEERS, python_of
from loadtest.peers.rounds import beside, beside_loops
from loadtest.peers.rows import LOOPS, ROWS, Result
from loadtest.peers.servers.infinity import make_checkpoint
from loadtest.peers.table import EVERY, TARGETS, cell, details, figures, keep, plot, read, table

KEPT = FOLDER.with_suffix(".json")
PLOT_FILE = FOLDER.with_suffix(".png")
LOOPED = "loops"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure the chosen rows, or print the stored ones."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.peers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of each row; its figure is their median")
    parser.add_argument("--scale", type=float, default=1.0, help="below 1 for a try: this share of requests")
    parser.add_argument("--only", choices=EVERY, action="append", help="only this row; may be repeated")
    parser.add_argument(
        "--peer", choices=(*PEERS, LOOPED), action="append", help="only this peer; may be repeated"
    )
    parser.add_argument("--setup", action="store_true", help="set up the environments, and measure nothing")
    parser.add_argument("--table", action="store_true", help="print what was measured before")
    options = parser.parse_args(argv)
    if options.table:
        show(read(KEPT))
        return 0
    peers, rows = options.peer or (*PEERS, LOOPED), options.only or tuple(EVERY)
    pythons = {name: python_of(PEERS[name]) for name in PEERS if name in peers}
    if "infinity" in pythons:
        make_checkpoint(CLIP)
    if options.setup:
        return 0
    measured: list[Result] = []
    for name, python in pythons.items():
        for role in ("vqa", "clip"):
            chosen = [ROWS[row] for row in rows if row in ROWS and ROWS[row].role == role]
            chosen = [row for row in chosen if name in row.peers]
            if chosen:
                chosen = [row.scaled(options.scale) for row in chosen]
                measured += map(note, beside(PEERS[name], role, chosen, options.rounds, python))
    if LOOPED in peers and (loops := [row for row in rows if row in LOOPS]):
        measured += map(note, beside_loops(loops, options.rounds))
    show(read(KEPT))
    plot(read(KEPT), PLOT_FILE)
    return gate(measured)


def note(result: Result) -> Result:
    """Store a result immediately, since a run takes most of an hour, and print it."""
    keep([result], KEPT)
    print(f"{result.row} beside {result.peer}: {cell(EVERY[result.row], result)}", flush=True)
    return result


def gate(measured: Sequence[Result]) -> int:
    """Print the figures that have a threshold; return 1 if one is missed."""
    found = [figure for figure in figures(measured) if figure.name in TARGETS]
    print("\n".join(report.table(found, TARGETS)))
    return 1 if report.missed(found, {figure.name: TARGETS[figure.name] for figure in found}) else 0


def show(results: Sequence[Result]) -> None:
    """Print both tables."""
    print("\n".join(["", *table(results), "", *details(results), ""]))
    print(f"{date.today():%d %B %Y}, {os.cpu_count()} cores")


if __name__ == "__main__":
    sys.exit(main())
