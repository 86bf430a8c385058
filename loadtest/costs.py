"""
`python -m loadtest.costs`: CPU time and model calls of 1,000 pictures, by metric, with the demo models.

Each ready metric scores the same held-out pictures, a prompt each.  Question sets are written before and
counted separately; model results are not cached.  Prints a Markdown table.  Other processes affect CPU time,
so compare ratios.
"""

import argparse
import io
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import ceil, nan

import httpx
import PIL.Image
import PIL.ImageDraw
import PIL.ImageFont

from demo.training.evaluation import Case, cases
from demo.training.language import metadata_of
from loadtest import servers
from loadtest.servers import TIMEOUT_MS, Item, batched, item, ready_metrics, results
from models.images.image import lossless

KINDS = ("presence", "binding", "relation", "count")
# For metrics that read text: the written word, and its height relative to the picture.
WORD, LETTERS = "OPEN", 0.25
ITEMS = 16  # items of a request
WARM = 4  # pictures of the warm-up
THOUSAND = 1_000
BASE = "clipscore"  # the others are compared with it
CALLS = re.compile(r'^scoregate_calls_total{.*model="(\w+)".*result="ok".*} (.+)$', re.MULTILINE)
PROCESSOR = re.compile(r"^process_cpu_seconds_total (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU time of the service in seconds, and calls by model."""

    seconds: float
    calls: Counter[str]

    def since(self, before: "Cost") -> "Cost":
        """Return the cost incurred after *before*."""
        return Cost(self.seconds - before.seconds, self.calls - before.calls)


@dataclass(frozen=True, slots=True)
class MetricCost:
    """Cost of a metric: *writing* its question sets, then *scoring*; or the first error."""

    writing: Cost
    scoring: Cost
    failure: str = ""


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if all metrics failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--metrics", nargs="+", help="by default all that are served")
    parser.add_argument("--pictures", dest="images", type=int, default=200, help="scored by each metric")
    given = parser.parse_args(argv)
    found: dict[str, MetricCost] = {}
    with servers.demo() as server, server.client() as client:
        warm, items = drawn(WARM, "warm"), drawn(given.images, "costs")
        for metric in given.metrics or ready_metrics(client):
            measured(client, metric, warm)
            found[metric] = measured(client, metric, items)
            print(f"{metric}: {found[metric].failure or 'measured'}", file=sys.stderr, flush=True)
    for line in table(found, given.images):
        print(line)
    return 1 if all(each.failure for each in found.values()) else 0


def drawn(count: int, seed: str) -> list[Item]:
    """Return pictures that every metric can score: with written text, and with GenEval metadata."""
    found: list[Item] = []
    for kind in KINDS:
        expressible = (case for case in cases(kind, 4 * count, seed) if metadata_of(case.statements[0]))
        found += [written_on(case) for case in islice(expressible, ceil(count / len(KINDS)))]
    return found[:count]


def written_on(case: Case) -> Item:
    """Return a case as an item of a request, with a word written on its picture."""
    shown = PIL.Image.open(io.BytesIO(case.image.encoded)).convert("RGB")
    size = LETTERS * shown.height
    PIL.ImageDraw.Draw(shown).text((0, 0), WORD, "black", PIL.ImageFont.load_default(size))
    options = {"geneval": metadata_of(case.statements[0]), "ocr": {"text": WORD}}
    return item(case.right, lossless(shown), options=options)


def measured(client: httpx.Client, metric: str, items: Sequence[Item]) -> MetricCost:
    """Return the cost of *items*; question sets, if the metric has any, are written first."""
    begun = cost(client)
    for part in batched(items, ITEMS):
        body = {"prompts": [each["prompt"] for each in part], "style": metric, "timeout_ms": TIMEOUT_MS}
        if client.post("/questions", json=body).status_code == 422:  # it has no questions
            break
    written = cost(client)
    failure = ""
    for result in results(client, items, metric, ITEMS):
        if metric not in result["scores"]:
            failure = failure or "{code}: {detail}".format(**result["errors"][metric])
    return MetricCost(written.since(begun), cost(client).since(written), failure)


def cost(client: httpx.Client) -> Cost:
    """Return the total cost of the service so far."""
    return cost_of(client.get("/metrics").raise_for_status().text)


def cost_of(exposition: str) -> Cost:
    """Parse the cost from the text of `/metrics`."""
    calls = Counter[str]()
    for model, count in CALLS.findall(exposition):
        calls[model] += int(float(count))
    return Cost(float(PROCESSOR.findall(exposition)[0]), calls)


def table(found: dict[str, MetricCost], images: int) -> Iterator[str]:
    """Yield a row for each metric, the cheapest first and failed ones last."""
    good = {name: each for name, each in found.items() if not each.failure}
    base = good[BASE].scoring.seconds if BASE in good else nan
    share = THOUSAND / images
    yield f"| metric | processor | beside `{BASE}` | calls | question sets: processor | calls |"
    yield "|---|---|---|---|---|---|"
    for name, each in sorted(good.items(), key=lambda entry: entry[1].scoring.seconds):
        written = f"{each.writing.seconds * share:.0f} s" if each.writing.calls else "–"
        yield (
            f"| `{name}` | {each.scoring.seconds * share:.1f} s | {each.scoring.seconds / base:.1f} "
            f"| {calls_of(each.scoring, share)} | {written} | {calls_of(each.writing, share) or '–'} |"
        )
    for name, each in found.items():
        if each.failure:
            yield f"| `{name}` | no figures: {each.failure} | | | | |"


def calls_of(cost: Cost, share: float) -> str:
    """Format the calls by model, scaled to 1,000 pictures."""
    return ", ".join(f"{count * share:,.0f} {model}" for model, count in sorted(cost.calls.items()))


if __name__ == "__main__":
    sys.exit(main())
