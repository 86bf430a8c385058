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
from typing import Any

from scoregate.cli.arguments import OK, add_settings, settings_of
from scoregate.runs.sizing import SizingSettings, estimates
from scoregate.text import table

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
    add_settings(parser, SizingSettings)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Return 0."""
    rows = list(estimates(settings_of(SizingSettings, arguments)))
    if arguments.json:
        print(json.dumps(rows))
    else:
        heads = [head for name, head in COLUMNS.items() if name in rows[0]]
        cells = [[written(name, value) for name, value in row.items()] for row in rows]
        print(table(heads, cells, right=heads[1:]))
    return OK


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
