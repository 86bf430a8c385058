"""`scoregate bench winoground`: Winoground (Thrush et al. 2022), by its own tags and later ones."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scoregate.bench.data import json_of, rows_of
from scoregate.bench.pairs import add_pairs, contents_of, pair_tables
from scoregate.evaluation import BadInput

PREDICATES = {"1": "1 Main Pred", "2": "2 Main Preds"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("data", type=Path, metavar="DATA", help="examples.jsonl: id, and tags if it has them")
    what = "new_tag_assignments.json: the tags of Diwan et al. 2022 for each id"
    parser.add_argument("--tags", type=Path, metavar="FILE", help=what)
    add_pairs(parser)


def tables(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return text, image and group score of each metric, by tag."""
    table, tags = rows_of(arguments.data), dict[str, list[str]]()
    for item, record in zip(table.names("id"), table.records, strict=True):
        own = [record.values.get("collapsed_tag"), PREDICATES.get(str(record.values.get("num_main_preds")))]
        tags[item] = [tag for tag in own if tag]
    more = json_of(arguments.tags) if arguments.tags else {}
    if not (isinstance(more, Mapping) and all(isinstance(each, list) for each in more.values())):
        raise BadInput(f"{arguments.tags}: not an object with a list of tags for each item")
    for item, names in more.items():
        if item not in tags:
            raise BadInput(f"{arguments.tags}: {arguments.data} has no item {item}")
        tags[item] += names or ["No Tag"]
    rows = zip(table.names("id"), table.records, strict=True)
    contents = {item: contents_of(record.values, "caption_", "image_") for item, record in rows}
    return pair_tables(arguments, table, table.names("id"), tags, contents)
