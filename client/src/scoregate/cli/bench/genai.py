"""`scoregate bench genai`: GenAI-Bench (Li et al. 2024), rated pictures of several generators."""

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from scoregate.cli.bench.data import (
    add_data,
    columns,
    joined,
    json_of,
    metrics_of,
    of_rows,
    read,
    worth,
)
from scoregate.cli.cells import opened
from scoregate.cli.evaluate.slices import values
from scoregate.cli.records import kind

if TYPE_CHECKING:
    from scoregate.evaluation import Table

HELP = "GenAI-Bench: agreement of metrics with ratings, generators by skill, best of N"
KEYS = ({"item": "item", "model": "model"}, {"item": "id", "model": "model"}, {"image": "image"})
ITEMS = ("item", "id")
OWN = {"item", "id", "model", "human", "rating", "skills"}
BASIC = ("attribute", "scene", "spatial relation", "action relation", "part relation")
ADVANCED = ("counting", "comparison", "differentiation", "negation", "universal")
GROUPS = {"basic": BASIC, "advanced": ADVANCED}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_data(parser, "genai_image.json; or a table with item, model, human and skills")
    what = "genai_skills.json: the prompts of each skill"
    parser.add_argument("--skills", type=Path, metavar="FILE", help=what)


def tables(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the agreement of metrics, generators by skill, and the rating of the best of N."""
    table = with_numbers(rated(arguments.data))
    for path in arguments.scores:
        table = joined(table, with_numbers(read(path)), KEYS)
    metrics = metrics_of(arguments, table, OWN)
    scores = {metric: worth(arguments, table, metric) for metric in metrics}
    human, models, items = table.numbers("human"), table.names("model"), table.names("item")
    tags = skills_of(arguments.skills, table)
    found: dict[str, Any] = {"metrics": [], "skills": [], "best_of": []}
    for metric in metrics:
        with columns(table.path, metric=metric, group="item"):
            score, rating, of_items = table.complete(scores[metric], human, [*items])
            found["metrics"].append(agreement(metric, score, rating) | {"dropped": table.dropped})
            found["best_of"].append(best(metric, score, rating, of_items))
    with columns(table.path, group="item"):
        _, rating, of_items = table.complete(human, human, [*items])
        found["best_of"].append(best("human", rating, rating, of_items))
    for name, column in {"human": human, **{metric: table.numbers(metric) for metric in metrics}}.items():
        found["skills"] += by_skill(name, column, models, tags)
    return {"prompts": len(set(items)), "generators": len(set(models)), **found}


def rated(path: Path) -> "Table":
    """Return a row for each picture: the prompt's item, the generator, people's mean rating, and scores."""
    from scoregate.evaluation import BadInput

    if kind(path) != ".json":
        return with_means(read(path))
    content = json_of(path)
    entries = content.items() if isinstance(content, Mapping) else enumerate(content)
    rows = []
    for name, entry in entries:
        models = entry.get("models") if isinstance(entry, Mapping) else None
        if not isinstance(models, Mapping):
            raise BadInput(f"{path}, prompt {name}: there is no object `models` with its generators")
        for model, cell in models.items():
            try:
                scores = dict(cell) if isinstance(cell, Mapping) else {"human": mean(cell)}
            except (TypeError, ValueError) as exc:
                raise BadInput(f"{path}, prompt {name}, {model}: {cell!r} are no ratings") from exc
            scores = {key: value for key, value in scores.items() if not key.endswith("_rank")}
            item = str(entry.get("id", name))
            rows.append({"item": item, "prompt": entry.get("prompt"), "model": model, **scores})
    if not rows:
        raise BadInput(f"{path}: there is no prompt")
    return of_rows(path, rows)


def with_means(table: "Table") -> "Table":
    """Return *table* with one rating for each row, the mean where a cell has several.  Raises `BadInput`."""
    from scoregate.evaluation import BadInput

    records = []
    for record in table.records:
        cell = opened(record.values.get("human"))
        try:
            more = {"human": mean(cell)} if isinstance(cell, list) and cell else {}
        except (TypeError, ValueError) as exc:
            raise BadInput(f"{table.path}, row {record.number}: {cell!r} are no ratings") from exc
        records.append(replace(record, values={**record.values, **more}))
    return replace(table, records=records)


def with_numbers(table: "Table") -> "Table":
    """Return *table* with items without leading zeros, as the files of scores and skills may have them."""
    from scoregate.evaluation.tables import text

    records = []
    for record in table.records:
        items = {name: item for name in ITEMS if (item := text(record.values.get(name))) is not None}
        more = {name: numbered(item) for name, item in items.items()}
        records.append(replace(record, values={**record.values, **more}))
    return replace(table, records=records)


def mean(ratings: Any) -> float:
    return fmean(map(float, ratings if isinstance(ratings, list) else [ratings]))


def skills_of(path: Path | None, table: "Table") -> list[list[str]]:
    """
    Return the skills of each row, by the file or the column `skills`; none without these.

    A prompt with an advanced skill is `advanced`, else `basic`, if the data has no such skills itself.
    """
    from scoregate.evaluation import BadInput

    found: list[list[str]] = [[] for _ in table.records]
    if path is not None:
        content = json_of(path)
        if not (isinstance(content, Mapping) and all(isinstance(each, list) for each in content.values())):
            raise BadInput(f"{path}: not an object with a list of prompts for each skill")
        listed: dict[str, list[str]] = defaultdict(list)
        for skill, prompts in content.items():
            for prompt in prompts:
                listed[numbered(prompt)].append(skill)
        found = [listed.get(numbered(item), []) for item in table.names("item")]
    elif "skills" in table.records[0].values:
        found = table.each("skills", values)
    if not any(skill in GROUPS for each in found for skill in each):
        found = [[*each, *grouped(each)] for each in found]
    return found


def numbered(item: Any) -> str:
    """Return an item without leading zeros: 00024 is 24 in the file of skills."""
    name = str(item)
    return (name.lstrip("0") or "0") if name.isdigit() else name


def grouped(skills: Sequence[str]) -> list[str]:
    if any(skill in ADVANCED for skill in skills):
        return ["advanced"]
    return ["basic"] if any(skill in BASIC for skill in skills) else []


def agreement(metric: str, score: Any, human: Any) -> dict[str, Any]:
    """Return a metric's row: its correlations with people's ratings, and the pairwise accuracy."""
    from scoregate.evaluation import correlation, pair_accuracy

    of_all, pairs = correlation(score, human), pair_accuracy(score, human)
    figures = {"pearson": of_all.pearson, "spearman": of_all.spearman, "kendall": of_all.kendall}
    return {"metric": metric, "n": of_all.n, **figures, "accuracy": pairs.accuracy, "epsilon": pairs.epsilon}


def best(metric: str, score: Any, human: Any, items: Sequence[str]) -> dict[str, Any]:
    from scoregate.evaluation.best_of import best_of

    found = best_of(score, human, items)
    return {
        "metric": metric,
        "prompts": found.groups,
        "mean": {str(n): each for n, each in found.means.items()},
    }


def by_skill(
    name: str, scores: Any, models: Sequence[str], tags: Sequence[Sequence[str]]
) -> list[dict[str, Any]]:
    """Return a row for each skill, with the generators' means; a picture counts under each of its skills."""
    cells: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for score, model, of_row in zip(scores, models, tags, strict=True):
        if score == score:
            for skill in ("all", *of_row):
                cells[skill][model].append(float(score))
    order = [*BASIC, "basic", *ADVANCED, "advanced"]
    order += sorted(cells.keys() - {*order, "all"})
    return [
        {
            "metric": name,
            "skill": skill,
            "pictures": sum(map(len, cells[skill].values())),
            "mean": {model: fmean(each) for model, each in sorted(cells[skill].items())},
        }
        for skill in (*order, "all")
        if skill in cells
    ]
