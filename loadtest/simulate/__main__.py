"""
`python -m loadtest.simulate`: predict p99 for a number of GPUs, and the smallest number that meets a target.

Takes arrivals by name or from a CSV file (time,images,questions,lane), and the cost of a batch.  Writes
`build/simulate.png`.  With `--validate` it is compared with the service instead, and exits 1 if a p99
is more than 15 % off.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from loadtest.shape import Shape
from loadtest.simulate.fleet import ROUTINGS
from loadtest.simulate.plot import plot
from loadtest.simulate.sweep import MOST, least, predicted, table
from loadtest.simulate.trace import TRACES, Request, made, read
from loadtest.simulate.validate import validate
from service.core.lanes import LANES

PICTURE = Path(__file__).parents[2] / "build" / "simulate.png"


def main(argv: Sequence[str] | None = None) -> int:
    """Return 0; 1 if no number of GPUs is enough or the service differs; 2 for an invalid file."""
    arguments = parser().parse_args(argv)
    if arguments.validate:
        return 0 if validate() else 1
    try:
        requests = arrivals(arguments)
    except (OSError, ValueError) as exc:
        print(exc, file=sys.stderr)
        return 2
    return sweep(requests, arguments)


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    options = argparse.ArgumentParser(prog="python -m loadtest.simulate", description=__doc__)
    options.add_argument("--trace", default="mixed", help=f"{', '.join(TRACES)}, or a CSV file")
    options.add_argument("--seconds", type=positive, default=20.0, help="of a trace by name")
    options.add_argument("--scale", type=positive, default=1.0, help="of a trace by name; 2 is twice as many")
    options.add_argument("--questions", type=count, default=1, help="for each image of a trace by name")
    options.add_argument("--fixed-ms", type=positive, default=20.0, help="of any batch")
    options.add_argument("--per-call-ms", type=positive, default=16.0, help="that each call adds to it")
    options.add_argument("--max-items", type=count, default=32, help="calls of a batch")
    options.add_argument("--max-batch-ms", type=positive, default=250.0, help="time of a batch")
    options.add_argument(
        "--request-ms", type=not_negative, default=5.0, help="of a request outside its batches"
    )
    routing = options.add_argument("--routing", choices=ROUTINGS, default="balancer")
    routing.help = "whether requests are dealt to GPUs, or calls, or all GPUs share one queue"
    options.add_argument("--gpus", type=count, action="append", help="only so many; may be repeated")
    options.add_argument("--p99-ms", type=positive, default=1000.0, help="the target")
    options.add_argument("--lane", choices=LANES, help="of the target; the most urgent of the trace")
    options.add_argument("--validate", action="store_true", help="compare with the service")
    return options


def positive(text: str) -> float:
    """Parse a number above 0.  Raises `ValueError`."""
    if not 0 < float(text) < float("inf"):
        raise ValueError
    return float(text)


def not_negative(text: str) -> float:
    """Parse a number of at least 0.  Raises `ValueError`."""
    return float(text) and positive(text)


def count(text: str) -> int:
    """Parse a whole number above 0.  Raises `ValueError`."""
    if int(text) < 1:
        raise ValueError
    return int(text)


def arrivals(arguments: argparse.Namespace) -> list[Request]:
    """Return the chosen trace.  Raises `OSError` or `ValueError`."""
    if arguments.trace in TRACES:
        return made(arguments.trace, arguments.seconds, arguments.scale, arguments.questions)
    return read(Path(arguments.trace))


def sweep(requests: Sequence[Request], arguments: argparse.Namespace) -> int:
    """Print a table and write the plot; return the exit status."""
    lanes = {request.lane for request in requests}
    lane = arguments.lane or next(lane for lane in LANES if lane in lanes)
    if lane not in lanes:
        print(f"the trace has no request in the lane {lane}", file=sys.stderr)
        return 2
    predict = partial(
        predicted,
        requests,
        shape=Shape(arguments.fixed_ms, arguments.per_call_ms, arguments.max_items),
        request_s=arguments.request_ms / 1000,
        routing=arguments.routing,
        max_batch_s=arguments.max_batch_ms / 1000,
    )
    within_s = arguments.p99_ms / 1000
    calls = sum(request.calls for request in requests)
    print(f"{arguments.trace}: {len(requests)} requests, {calls} calls", flush=True)
    if arguments.gpus:
        points = [predict(gpus) for gpus in sorted(set(arguments.gpus))]
    else:
        points = least(predict, lambda point: point.holds(lane, within_s))
    print("\n".join(table(points)))
    plot(points, within_s, f"{arguments.trace}, simulated", PICTURE)
    found = next((point.gpus for point in points if point.holds(lane, within_s)), None)
    target = f"a p99 of {arguments.p99_ms:g} ms in the lane {lane}"
    of_many = f"none of {len(points)} numbers" if arguments.gpus else f"not even {MOST} GPUs"
    print(f"{found} GPUs keep to {target}" if found else f"{of_many} keeps to {target}")
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main())
