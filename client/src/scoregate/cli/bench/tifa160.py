"""`scoregate bench tifa160`: 800 pictures of 160 prompts with ratings of TIFA (Hu et al. 2023) or DSG."""

import argparse
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from scoregate.cli.bench.data import add_data, columns, first_of, metrics_of, read, table_of, worth
from scoregate.cli.bench.genai import agreement
from scoregate.cli.records import Record

if TYPE_CHECKING:
    from scoregate.evaluation import Table

HELP = "TIFA160: agreement of metrics with people's ratings"
OWN = {"id", "text_id", "image_path", "human_avg", "human_scores", "human"}
MODELS = ("t2i_model", "model_type")  # in the ratings of DSG, and in the copy of t2v_metrics
GENERATORS = {  # in the ratings of DSG, and in the names of TIFA's pictures
    "mini-dalle": "mini_dalle",
    "sd1dot1": "stable_diffusion_v1_1",
    "sd1dot5": "stable_diffusion_v1_5",
    "sd2dot1": "stable_diffusion_v2_1",
    "vq-diffusion": "vq_diffusion",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_data(
        parser, "human_annotations_with_scores.json: image_path, human_avg; or tifa160.json, with --likert"
    )
    what = (
        "DSG's ratings in place of human_avg: tifa160-likert-anns.csv, or dsg_tifa160_anns.csv of t2v_metrics"
    )
    parser.add_argument("--likert", type=Path, metavar="FILE", help=what)


def tables(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the agreement of each metric with people's ratings."""
    from scoregate.evaluation import BadInput
    from scoregate.evaluation.tables import held

    table = table_of(arguments, {"image_path": "image_path"}, {"image_path": "image"})
    if arguments.likert:
        table = with_likert(table, arguments.likert)
    elif not any(held(record.values, "human_avg") for record in table.records):
        raise BadInput(f"{table.path}: no column human_avg; name a file of ratings by --likert")
    human = table.numbers("human_avg")
    found = []
    for metric in metrics_of(arguments, table, OWN):
        with columns(table.path, metric=metric, human="human_avg"):
            row = agreement(metric, *table.complete(worth(arguments, table, metric), human))
        found.append(row | {"dropped": table.dropped})
    return {"metrics": found}


def with_likert(table: "Table", path: Path) -> "Table":
    """Return *table* with DSG's mean rating of each picture as `human_avg`.  Raises `BadInput`."""
    from scoregate.evaluation import BadInput

    ratings, found = read(path), defaultdict(list)
    keys = zip(ratings.names("source_id"), ratings.names(first_of(ratings, *MODELS)), strict=True)
    for (item, model), rating in zip(keys, ratings.numbers("answer"), strict=True):
        if rating == rating:
            found[f"{item}_{GENERATORS.get(model, model)}"].append(float(rating))
    names = [Path(name).stem for name in table.names("image_path")]
    if not found.keys() & {*names}:
        raise BadInput(f"{path}: no rating is about a picture of {table.path}")
    rows = zip(table.records, names, strict=True)
    means = [(each, fmean(found[name]) if name in found else None) for each, name in rows]
    return replace(
        table, records=[Record(each.number, {**each.values, "human_avg": mean}) for each, mean in means]
    )
