"""`python -m tests.app.fuzz_serving`: run the fuzzers with many seeds; status 1 if one finds something."""

import argparse
import asyncio
import logging
import sys
import time
import traceback

from tests.app.fuzz_serving import lifecycle, pool, replicas

FUZZERS = {"pool": pool.fuzz, "lifecycle": lifecycle.fuzz, "replicas": replicas.fuzz}


def findings_of(name: str, seed: int) -> list[str]:
    """Return what one run finds; an exception of the run is a finding, too."""
    try:
        return asyncio.run(FUZZERS[name](seed))
    except Exception as exc:
        traceback.print_exc()
        return [f"seed {seed}: the run raised {exc!r}"]


def main() -> int:
    """Run each fuzzer with one seed after the other until its time is over.  Return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.app.fuzz_serving", description=__doc__)
    parser.add_argument("--only", choices=FUZZERS, help="one of the fuzzers; by default all")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--runs", type=int, help="of each fuzzer; by default as many as its time allows")
    parser.add_argument("--seconds", type=float, default=90.0, help="for each fuzzer")
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)  # the faults are on purpose
    found = 0
    for name in [options.only] if options.only else FUZZERS:
        ends, seed = time.monotonic() + options.seconds, options.seed
        while time.monotonic() < ends and (options.runs is None or seed < options.seed + options.runs):
            findings = findings_of(name, seed)
            found += len(findings)
            for finding in findings:
                print(f"{name}, {finding}", flush=True)
            seed += 1
        print(f"{name}: seeds {options.seed} to {seed - 1}", flush=True)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
