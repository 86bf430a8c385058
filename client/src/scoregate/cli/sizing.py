"""
`scoregate sizing`: how long a data set takes on some GPUs, by the formula of docs/operations/sizing.md.

How long a data set takes on some GPUs, and what it costs, by the formula:

```console
$ scoregate sizing clip-flant5-xl --pictures 1e9 --cards 64 --card A100 --price 1.5
MODEL                PICTURES  CARDS  PICTURES/S      TIME  CARD HOURS  CORES  READ MB/S  PRICE
clip-flant5-xl  1,000,000,000     64       5,300  2.2 days       3,400     10        530  5,100
```

`--card` is `H100` (default), `A100`, `RTX-4090` or `L4`. `--rate` takes the place of the formula: the
pictures per second that a card of yours scores. `--kb` is the size of a picture's file. The price is for an
hour of a card, in any currency.
"""

import argparse
import json
from collections.abc import Iterator
from itertools import product
from typing import Any

from scoregate.cli.arguments import OK, UsageError
from scoregate.settings import finite, seconds, whole
from scoregate.text import table

# 10^12 operations of one picture with one question, of 336^2 for CLIP-FlanT5 and of 224^2 for a CLIP.
TFLOP_PER_ITEM = {
    "clip-vit-l-14": 0.162,
    "clip-vit-h-14": 0.335,
    "clip-flant5-xl": 1.9,
    "clip-flant5-xxl": 6.35,
}
# 10^12 operations a second in bfloat16; of the cards of the shipped profiles.
TFLOPS_PER_S = {"H100": 400.0, "A100": 156.0, "RTX-4090": 82.5, "L4": 60.5}
JPEGS_PER_CORE_S = 517.0  # JPEGs of 512^2 that a core decodes and resizes in a second
COLUMNS = {
    "model": "MODEL",
    "pictures": "PICTURES",
    "cards": "CARDS",
    "per_second": "PICTURES/S",
    "hours": "TIME",
    "card_hours": "CARD HOURS",
    "cores": "CORES",
    "read_mb_s": "READ MB/S",
    "price": "PRICE",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add = parser.add_argument
    add(
        "models",
        nargs="*",
        metavar="MODEL",
        help=f"of {', '.join(TFLOP_PER_ITEM)} (default: clip-vit-l-14, clip-flant5-xl)",
    )
    add("--pictures", type=number, action="append", metavar="N", help="such as 1e9 (default: 1e7 and 1e9)")
    add("--cards", type=whole, action="append", metavar="N", help="GPUs (default: 1 and 64)")
    add("--card", choices=[*TFLOPS_PER_S], default="H100", help="default %(default)s")
    add(
        "--rate",
        type=seconds,
        metavar="X",
        help="pictures a second of a card, as measured, in place of the formula",
    )
    add("--kb", type=finite, default=100.0, metavar="X", help="of a picture's file (default %(default)g)")
    add("--price", type=finite, metavar="X", help="of an hour of a card, in any currency")
    add("--json", action="store_true", help="print JSON")


def number(text: str) -> int:
    """Return a whole number from 1, which may be written as 1e9."""
    return whole(str(int(finite(text))))


def run(arguments: argparse.Namespace) -> int:
    """Return 0."""
    models = arguments.models or ["clip-vit-l-14", "clip-flant5-xl"]
    if unknown := [model for model in models if model not in TFLOP_PER_ITEM]:
        raise UsageError(f"no model {', '.join(unknown)}; there are {', '.join(TFLOP_PER_ITEM)}")
    rows = list(
        figures(models, arguments.pictures or [10**7, 10**9], arguments.cards or [1, 64], vars(arguments))
    )
    if arguments.json:
        print(json.dumps(rows))
    else:
        heads = [head for name, head in COLUMNS.items() if name in rows[0]]
        print(
            table(
                heads,
                [[written(name, value) for name, value in row.items()] for row in rows],
                right=heads[1:],
            )
        )
    return OK


def figures(
    models: list[str], images: list[int], cards: list[int], given: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the figures of each model with each number of pictures on each number of cards."""
    for model, count, used in product(models, images, cards):
        rate = used * (given["rate"] or TFLOPS_PER_S[given["card"]] / TFLOP_PER_ITEM[model])
        hours = count / rate / 3600
        price = {} if given["price"] is None else {"price": hours * used * given["price"]}
        yield {
            "model": model,
            "pictures": count,
            "cards": used,
            "per_second": rate,
            "hours": hours,
            "card_hours": hours * used,
            "cores": rate / JPEGS_PER_CORE_S,
            "read_mb_s": rate * given["kb"] / 1000,
            **price,
        }


def written(name: str, value: Any) -> str:
    """Return a figure with two significant digits, an integer whole, and hours with their unit."""
    if not isinstance(value, float):
        return f"{value:,}" if isinstance(value, int) else str(value)
    if name == "hours":
        amount, unit = (
            (value * 60, "min") if value < 1 else (value, "h") if value < 48 else (value / 24, "days")
        )
        return f"{short(amount)} {unit}"
    return short(value)


def short(value: float) -> str:
    """Return a number with two significant digits, and at most one after the point."""
    return f"{value:.1f}" if value < 10 else f"{float(f'{value:.2g}'):,.0f}"
