"""`python -m loadtest.generator HOST PORT SPEC FILE`: send a workload, write the results of its requests."""

import asyncio
import gc
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import orjson

from loadtest.generator.sending import send, written
from loadtest.generator.wires import WIRES
from loadtest.workloads.named import plan
from loadtest.workloads.spec import Spec


def main(argv: Sequence[str] | None = None) -> None:
    """Run one spec, given as JSON."""
    host, port, spec, file = sys.argv[1:] if argv is None else argv
    wanted = Spec(**orjson.loads(spec))
    wire = WIRES[wanted.wire]
    requests = written(plan(wanted), wire)
    gc.collect()
    gc.freeze()  # collecting these bodies would add to a request's latency
    outcomes = asyncio.run(send(requests, host, int(port), wanted.timeout_ms / 1000, wire))
    Path(file).write_bytes(orjson.dumps([asdict(outcome) for outcome in outcomes]))


if __name__ == "__main__":
    main()
