"""
`python -m loadtest [--set short|full|bench] [--only NAME]`: measure, and print each figure with its target.

`--only cpu [--against REF]` is the CPU time of a picture, here and in the previous release.

Exits 1 if a threshold of `thresholds.toml` is missed.  Writes `build/loadtest/SET.png`.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import monotonic

from loadtest.measures import comparison, cpu, decisions, demo, devices, groups, queueing, stream
from loadtest.report import SIZES, Report, Size, plot, read_thresholds, show

FOLDER = Path(__file__).parents[1] / "build" / "loadtest"

Measure = Callable[[Report, Size], None]
MEASURES: dict[str, Measure] = {
    "overhead": comparison.overhead,
    "overhead-of-photos": comparison.overhead_of_photos,
    "demo": demo.measure,
    "served-over-offline": queueing.served_over_offline,
    "interactive": queueing.interactive_under_bulk,
    "goodput": queueing.overload,
    "retry-after": queueing.retry_after,
    "comparison": comparison.over_baselines,
    "devices": devices.several_devices,
    "replicas": devices.several_replicas,
    "peers": comparison.over_flask,
    "stream": stream.measure,
    "groups": groups.measure,
    "decide-hang": decisions.measure,
    "cpu": cpu.measure,
}
BENCH = ("overhead", "demo", "peers")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure one set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=SIZES, default="short")
    parser.add_argument(
        "--only", choices=MEASURES, action="append", help="only this measure; may be repeated"
    )
    parser.add_argument("--against", metavar="REF", default="", help="of `cpu`; by default the latest tag")
    arguments = parser.parse_args(argv)
    measures = MEASURES | {"cpu": partial(cpu.measure, against=arguments.against)}
    thresholds = read_thresholds("bench" if arguments.set == "bench" else "short")
    chosen = arguments.only or (BENCH if arguments.set == "bench" else tuple(MEASURES))
    report, began = Report(), monotonic()
    for name in chosen:
        print(f"{name}:", flush=True)
        measures[name](report, SIZES[arguments.set])
    failed = show(report, thresholds, some=bool(arguments.only))
    if report.runs:
        plot(report.runs, FOLDER / f"{arguments.set}.png")
    print(f"{monotonic() - began:.0f} s; {'missed: ' + ', '.join(failed) if failed else 'all targets met'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
