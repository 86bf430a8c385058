"""
TIFA160: agreement of metrics with people's ratings.

800 pictures of 160 prompts with TIFA's ratings, or by `--likert` with those of DSG:
`tifa160-likert-anns.csv`, or `dsg_tifa160_anns.csv` of t2v_metrics. TIFA's notebook calls Pearson's
correlation Spearman's.

DATA: `human_annotations_with_scores.json`: `image_path`, `human_avg`; or `tifa160.json` of t2v_metrics,
with `--likert`. Key of scores: `image_path` (or `image`).
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import numpy as np

from scoregate.bench.data import (
    JoinSettings,
    MetricBenchmark,
    joins,
    mark,
    metrics_of,
    of_each,
    table_of,
    worth,
)
from scoregate.bench.metrics.genai import agreement
from scoregate.errors import InputError, named
from scoregate.evaluation.arrays import Floats, Scale
from scoregate.evaluation.outcome import OnScale
from scoregate.evaluation.tables import Table, first_of, rows_of
from scoregate.records import Record
from scoregate.settings import Setting

DATA_COLUMNS = {"id", "text_id", "image_path", "human_avg", "human_scores", "human"}
MODELS = ("t2i_model", "model_type")  # the ratings of DSG have one, and the copy of t2v_metrics the other
GENERATORS = {  # names in the ratings of DSG, and in the names of TIFA's pictures
    "mini-dalle": "mini_dalle",
    "sd1dot1": "stable_diffusion_v1_1",
    "sd1dot5": "stable_diffusion_v1_5",
    "sd2dot1": "stable_diffusion_v2_1",
    "vq-diffusion": "vq_diffusion",
}


@dataclass(frozen=True, kw_only=True)
class Tifa160Settings(OnScale, JoinSettings):
    """The settings of TIFA160 (Hu et al. 2023)."""

    likert: Annotated[
        Path | None,
        Setting(
            "DSG's ratings in place of human_avg: tifa160-likert-anns.csv, or dsg_tifa160_anns.csv of"
            " t2v_metrics",
            metavar="FILE",
        ),
    ] = None


def tables(settings: Tifa160Settings) -> dict[str, Any]:
    """Return the agreement of each metric with people's ratings."""
    table = table_of(settings, {"image_path": "image_path"}, {"image_path": "image"})
    once(table)
    if settings.likert:
        table, outside = with_likert(table, settings.likert, settings.scale)
        human = table.numbers("human_avg")
    elif not table.has("human_avg"):
        raise InputError(f"{table.place}: no column human_avg; name a file of ratings by {named('likert')}")
    else:
        human, outside = on_scale(table.numbers("human_avg"), settings.scale)

    def figures(metric: str) -> dict[str, Any]:
        row = agreement(*table.complete(worth(settings, table, metric), human))
        return row | {"dropped": table.dropped, **mark(table)}

    metrics = [name for _, name in metrics_of(settings, [table], DATA_COLUMNS)]
    rows = of_each(settings, table.place, metrics, figures, human="human_avg")
    return {"out_of_scale": outside, **joins(table), "metrics": rows}


def once(table: Table) -> None:
    """Raise `InputError` if two rows are about one picture."""
    for key in (("image_path",), ("text_id", "generator")):
        if all(name in table.records[0].values for name in key):
            image, count = Counter(zip(*map(table.names, key), strict=True)).most_common(1)[0]
            if count > 1:
                raise InputError(
                    f"{table.place}, column {', '.join(key)}: {', '.join(image)} has {count} rows"
                )


def on_scale(ratings: Floats, scale: Scale | None) -> tuple[Floats, int]:
    """Return the ratings with NaN for those outside the scale, and the number of these."""
    outside = (
        np.zeros(len(ratings), bool) if scale is None else (ratings < scale.low) | (ratings > scale.high)
    )
    return np.where(outside, np.nan, ratings), int(outside.sum())


def with_likert(table: Table, path: Path, scale: Scale | None) -> tuple[Table, int]:
    """
    Return *table* with DSG's mean rating of each picture as `human_avg`, and the number outside the scale.

    Raises:
        InputError: no rating is about a picture of *table*, or a cell cannot be read.
    """
    ratings, found = rows_of(path), defaultdict(list)
    keys = zip(ratings.names("source_id"), ratings.names(first_of(ratings, *MODELS)), strict=True)
    answers, outside = on_scale(ratings.numbers("answer"), scale)
    for (item, model), rating in zip(keys, answers, strict=True):
        if rating == rating:
            found[f"{item}_{GENERATORS.get(model, model)}"].append(float(rating))
    names = [Path(name).stem for name in table.names("image_path")]
    if not found.keys() & {*names}:
        raise InputError(f"{path}: no rating is about a picture of {table.place}")
    rows = zip(table.records, names, strict=True)
    means = [(each, fmean(found[name]) if name in found else None) for each, name in rows]
    records = [Record(each.number, {**each.values, "human_avg": mean}) for each, mean in means]
    return replace(table, records=records), outside


TIFA160 = MetricBenchmark(
    "tifa160",
    "human_annotations_with_scores.json: image_path, human_avg; or tifa160.json, with --likert",
    Tifa160Settings,
    tables,
)
