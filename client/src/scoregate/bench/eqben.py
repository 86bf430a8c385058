"""`scoregate bench eqben`: EqBen (Wang et al. 2023), and its subset EqBen-Mini, by source."""

import argparse
from pathlib import Path
from typing import Any

from scoregate.bench.data import rows_of
from scoregate.bench.pairs import add_pairs, contents_of, pair_tables

KUBRIC = "eqbenkubric"  # its three parts are also one


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    what = "all_select.json: items in order, with the picture image0 in the folder of its source"
    parser.add_argument("data", type=Path, metavar="DATA", help=what)
    add_pairs(parser)


def tables(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return text, image and group score of each metric, by source.  Items are numbered from 0."""
    table = rows_of(arguments.data)
    sources = [Path(name).parts[0] for name in table.names("image0")]
    of_items = {str(place): tags(source) for place, source in enumerate(sources)}
    contents = [contents_of(record.values, "caption", "image") for record in table.records]
    return pair_tables(arguments, table, [*of_items], of_items, dict(zip(of_items, contents, strict=True)))


def tags(source: str) -> list[str]:
    return [source, KUBRIC] if source.startswith(f"{KUBRIC}_") else [source]
