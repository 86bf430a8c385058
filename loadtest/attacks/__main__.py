"""
`python -m loadtest.attacks [--only NAME]`: attack the service, and print the effect on other callers.

Everything stays on loopback.  Each attack gets its own process with a memory limit, and ends by
itself.  Exits 1 if a figure exceeds its bound in `thresholds.toml`.
"""

import argparse
import sys
from collections.abc import Callable, Sequence

from loadtest.attacks import bodies, clients, dialects, stores, urls
from loadtest.report import Report, read_thresholds, show

ATTACKS: dict[str, Callable[[Report], None]] = {
    "a": bodies.memory,
    "b": dialects.pickles,
    "cd": dialects.entries,
    "e": bodies.lists,
    "f": dialects.waiters,
    "g": urls.names,
    "h": urls.stalls,
    "i": bodies.pipelines,
    "j": urls.chunks,
    "k": clients.large_answers,
    "l": clients.wrong_answers,
    "m": dialects.echoes,
    "n": stores.imports,
    "o": clients.foreign_files,
    "p": urls.repeats,
    "q": stores.idle,
    "r": stores.ray,
    "slow": bodies.slow_images,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the chosen attacks, by default all."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.attacks", description=__doc__)
    parser.add_argument("--only", choices=ATTACKS, action="append", help="only this attack; may be repeated")
    chosen = parser.parse_args(argv).only or list(ATTACKS)
    report = Report()
    for name in chosen:
        print(f"{name}: {ATTACKS[name].__doc__}", flush=True)
        ATTACKS[name](report)
    failed = show(report, read_thresholds("attacks"), some=chosen != list(ATTACKS))
    print(f"missed: {', '.join(failed)}" if failed else "every figure is within its bound")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
