"""
`python -m loadtest.feed`: pictures per second that one process can decode and pass to its device.

The service runs around the null model, which decodes every picture and takes no time.  Real models also
resize, which is timed separately.  Prints a Markdown table.
"""

import argparse
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import median
from time import thread_time

import PIL.Image

from loadtest import corpus, servers
from loadtest.results import throughput
from loadtest.servers import Server
from loadtest.workloads import Spec
from models.images.pixels import CLIP_MEAN, pad_and_resize

SIDE = 336  # CLIP-FlanT5's input; 224 takes a few tenths of a millisecond less
COLOUR = tuple(int(255 * mean) for mean in CLIP_MEAN)  # the colour of its padding
TIMES = 20  # each picture is resized
IMAGES = 512
AT_ONCE = Spec("sixty-four-at-once", rate=1, seconds=IMAGES)
SENT = {
    "32² PNG, one a request": replace(AT_ONCE, image="tiny"),
    "512² JPEG, one a request": replace(AT_ONCE, image="rl"),
    "512² JPEG, 128 a request": Spec("whole", image="rl"),
    "1024² JPEG, one a request": replace(AT_ONCE, image="jpeg"),
}


@dataclass(frozen=True, slots=True)
class Feed:
    """CPU milliseconds of a picture in the service and for *resize*; pictures a second on all cores."""

    service_ms: float
    resize_ms: float
    rate: float

    @property
    def per_core(self) -> float:
        """Pictures a second that a core decodes, resizes and passes on."""
        return 1000 / (self.service_ms + self.resize_ms)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m loadtest.feed", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of each row; its figures are their medians")
    rounds = parser.parse_args(argv).rounds
    with servers.null() as null:
        print("\n".join(table({name: fed(null, spec, rounds) for name, spec in SENT.items()})))
    return 0


def fed(null: Server, spec: Spec, rounds: int) -> Feed:
    """Measure the pictures of *spec*; the first round warms up."""
    found = [round_of(null, replace(spec, seed=seed)) for seed in range(rounds + 1)][1:]
    service_s, rates = (median(column) for column in zip(*found, strict=True))
    return Feed(1000 * service_s, resize_ms(spec.image), rates)


def round_of(null: Server, spec: Spec) -> tuple[float, float]:
    """Return CPU seconds of a picture, and pictures a second."""
    before = servers.cpu_s(null.pid)
    outcomes = null.run(spec)
    used_s = servers.cpu_s(null.pid) - before
    return used_s / sum(outcome.items for outcome in outcomes), throughput(outcomes)


@cache
def resize_ms(kind: str) -> float:
    """Return the CPU milliseconds of resizing a decoded picture on the host, as the models do."""
    times = []
    for file in corpus.image_files(kind) * TIMES:
        rgb = PIL.Image.open(io.BytesIO(file)).convert("RGB")
        began = thread_time()
        pad_and_resize(rgb, SIDE, COLOUR)
        times.append(thread_time() - began)
    return 1000 * median(times)


def table(found: dict[str, Feed]) -> list[str]:
    """Return a line for each way of sending; the last column is the rate of all cores, without resizing."""
    head = ("sent", "service, ms of a core", f"resize to {SIDE}², ms", "pictures/s a core feeds", "measured")
    rows = [
        (name, f"{feed.service_ms:.2f}", f"{feed.resize_ms:.2f}", f"{feed.per_core:.0f}", f"{feed.rate:.0f}")
        for name, feed in found.items()
    ]
    return [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]


if __name__ == "__main__":
    sys.exit(main())
