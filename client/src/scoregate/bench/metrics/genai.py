"""
GenAI-Bench: agreement of metrics with ratings, generators by skill, best of N.

GenAI-Bench (Li et al. 2024, [arXiv 2406.13743](https://arxiv.org/abs/2406.13743)). Ratings of a picture are
averaged: those in a cell, or of the rows with the same `item`, `model` and `image`. `--scale 1:5` excludes
ratings such as the 41 and 33 in the authors' file.

* **`metrics`**: [agreement](figures.md#agreement) over all pictures.
* **`skills`**: means by skill and generator, from `--skills genai_skills.json`, the prompts of each skill,
  or the column `skills`. A prompt with several skills counts in each. If `basic` and `advanced` are not
  among them, a prompt with an advanced skill is advanced, and any other with a basic one basic.
* **`best_of`**: people's mean rating of the picture with the best score among N of a prompt. 1 is a random
  picture, the row `human` the best possible. Prompts with fewer pictures than others are left out.

DATA: `genai_image.json`; or `item`, `model`, `human` and `skills`. Key of scores: `item` (or `id`) and
`model`, or `image`.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from scoregate.bench.data import (
    JoinSettings,
    MetricBenchmark,
    columns,
    joined,
    joins,
    mark,
    metrics_of,
    of_each,
    worth,
)
from scoregate.errors import InputError
from scoregate.evaluation.agreement import BestOf, best_of, correlation
from scoregate.evaluation.arrays import Scale
from scoregate.evaluation.outcome import OnScale
from scoregate.evaluation.pair_accuracy import pair_accuracy
from scoregate.evaluation.tables import Table, rows_of, text, values
from scoregate.records import Record, cell_number, json_cell, json_of, kind
from scoregate.settings import Setting

KEYS = ({"item": "item", "model": "model"}, {"item": "id", "model": "model"}, {"image": "image"})
ITEMS = ("item", "id")
DATA_COLUMNS = {"item", "id", "model", "human", "rating", "skills"}
BASIC = ("attribute", "scene", "spatial relation", "action relation", "part relation")
ADVANCED = ("counting", "comparison", "differentiation", "negation", "universal")
GROUPS = {"basic": BASIC, "advanced": ADVANCED}


@dataclass(frozen=True, kw_only=True)
class GenAiSettings(OnScale, JoinSettings):
    """The settings of GenAI-Bench."""

    skills: Annotated[
        Path | None, Setting("genai_skills.json: the prompts of each skill", metavar="FILE")
    ] = None


def tables(settings: GenAiSettings) -> dict[str, Any]:
    """Return the agreement of metrics, generators by skill, and the rating of the best of N."""
    table, facts = image_rows(rated(settings.data), settings.scale)
    table = without_zeros(table)
    for path in settings.scores:
        table = joined(table, without_zeros(rows_of(path)), KEYS, by_order=settings.by_order)
    if differing := [name for name in settings.metric if name in facts.get("left_out", ())]:
        raise InputError(f"{table.place}, column {differing[0]}: the rows of a picture have several values")
    metrics = [name for _, name in metrics_of(settings, [table], DATA_COLUMNS)]
    human, models, items = table.numbers("human"), table.names("model"), table.names("item")
    tags = skills_of(settings.skills, table)
    picked: dict[str, tuple[BestOf, dict[str, bool]]] = {}

    def figures(metric: str) -> dict[str, Any]:
        score, rating, of_items = table.complete(worth(settings, table, metric), human, [*items])
        said = mark(table)
        row = agreement(score, rating) | {"dropped": table.dropped, **said}
        picked[metric] = best_of(score, rating, of_items), said
        return row

    rows = of_each(settings, table.place, metrics, figures, group="item")
    with columns(table.place, group="item"):
        _, rating, of_items = table.complete(human, human, [*items])
        picked["human"] = best_of(rating, rating, of_items), {}
    means = {name: {str(n): each for n, each in found.means.items()} for name, (found, _) in picked.items()}
    judges = {"human": human, **{metric: table.numbers(metric) for metric in metrics}}
    skills = [row for name, column in judges.items() for row in by_skill(name, column, models, tags)]
    return (
        {"prompts": len(set(items)), "generators": len(set(models)), **facts, **joins(table)}
        | {"metrics": rows, "skills": skills}
        | {
            "best_of": [
                {"metric": name, "prompts": found.groups, "mean": means[name], **said}
                for name, (found, said) in picked.items()
            ]
        }
    )


def rated(path: Path) -> Table:
    """Return a row for each picture or rating: the prompt's item, the generator, people's ratings, scores."""
    if kind(path) != ".json":
        return rows_of(path)
    content = json_of(path)
    entries = content.items() if isinstance(content, Mapping) else enumerate(content)
    rows = []
    for name, entry in entries:
        models = entry.get("models") if isinstance(entry, Mapping) else None
        if not isinstance(models, Mapping):
            raise InputError(f"{path}, prompt {name}: there is no object `models` with its generators")
        for model, cell in models.items():
            scores = dict(cell) if isinstance(cell, Mapping) else {"human": cell}
            scores = {key: value for key, value in scores.items() if not key.endswith("_rank")}
            item = str(entry.get("id", name))
            rows.append({"item": item, "prompt": entry.get("prompt"), "model": model, **scores})
    if not rows:
        raise InputError(f"{path}: there is no prompt")
    return Table(str(path), [Record(number, row) for number, row in enumerate(rows, 1)])


def image_rows(table: Table, scale: Scale | None) -> tuple[Table, dict[str, Any]]:
    """
    Return a row for each picture, with the mean of its ratings inside the scale, and facts about the ratings.

    A picture is an item and a generator, and an image if there is such a column.  It may have a row for each
    rating, or several ratings in a cell.  Other cells that its rows do not share, such as a rater, are left
    out, and the facts name their columns.
    """
    keys = zip(
        table.names("item"),
        table.names("model"),
        [text(record.values.get("image")) for record in table.records],
        strict=True,
    )
    of_key: dict[Any, list[Record]] = defaultdict(list)
    for key, record in zip(keys, table.records, strict=True):
        of_key[key].append(record)
    records, left_out, outside, count = [], dict[str, None](), 0, 0
    for key, rows in of_key.items():
        ratings = [rating for record in rows for rating in ratings_of(table, key, record)]
        inside = [each for each in ratings if scale is None or scale.low <= each <= scale.high]
        outside, count = outside + len(ratings) - len(inside), count + len(inside)
        names = [name for row in rows[1:] for name in {**rows[0].values, **row.values}]
        left_out |= {name: None for name in names if len({text(row.values.get(name)) for row in rows}) > 1}
        mean = fmean(inside) if inside else None
        records.append(Record(rows[0].number, {**rows[0].values, "human": mean}))
    left_out.pop("human", None)
    for place, each in enumerate(records):
        shared = {name: value for name, value in each.values.items() if name not in left_out}
        records[place] = replace(each, values=shared)
    facts: dict[str, Any] = {"pictures": len(records), "ratings": count, "out_of_scale": outside}
    return replace(table, records=records), facts | ({"left_out": [*left_out]} if left_out else {})


def ratings_of(table: Table, key: Sequence[str], record: Record) -> list[float]:
    """Return the ratings in a row: a number, a list, in CSV as JSON, or none.  Raises `InputError`."""
    cell = json_cell(record.values.get("human"))
    several = isinstance(cell, list)
    try:
        found = [cell_number(each) for each in (cell if several else [cell])]
    except ValueError:
        found = []
    if not found or (several and any(each != each for each in found)):
        place = f"{table.place}, row {record.number}, column human, item {key[0]}, model {key[1]}"
        raise InputError(f"{place}: {cell!r} are no ratings")
    return [each for each in found if each == each]


def without_zeros(table: Table) -> Table:
    """
    Return *table* with items without leading zeros, as the files of scores and skills may have them.

    Items that would then be one, such as 1 and 01, stay as they are.
    """
    records = table.records
    for name in ITEMS:
        items = {item for record in records if (item := text(record.values.get(name))) is not None}
        if len({*map(numbered, items)}) < len(items):
            continue
        records = [
            replace(record, values={**record.values, name: numbered(item)})
            if (item := text(record.values.get(name))) is not None
            else record
            for record in records
        ]
    return replace(table, records=records)


def skills_of(path: Path | None, table: Table) -> list[list[str]]:
    """
    Return the skills of each row, by the file or the column `skills`; none without these.

    A prompt with an advanced skill is `advanced`, else `basic`, if the data has no such skills itself.
    """
    found: list[list[str]] = [[] for _ in table.records]
    if path is not None:
        content = json_of(path)
        if not (isinstance(content, Mapping) and all(isinstance(each, list) for each in content.values())):
            raise InputError(f"{path}: not an object with a list of prompts for each skill")
        items = table.names("item")
        of_prompt = numbered if all(item == numbered(item) for item in items) else str
        listed: dict[str, list[str]] = defaultdict(list)
        for skill, prompts in content.items():
            for prompt in prompts:
                listed[of_prompt(prompt)].append(skill)
        found = [[*listed.get(item, ())] for item in items]
    elif "skills" in table.records[0].values:
        found = table.each("skills", values)
    if not any(skill in GROUPS for each in found for skill in each):
        for each in found:
            basic = ["basic"] if {*each} & {*BASIC} else []
            each += ["advanced"] if {*each} & {*ADVANCED} else basic
    return found


def numbered(item: Any) -> str:
    """Return an item without leading zeros: 00024 is 24 in the file of skills."""
    name = str(item)
    return (name.lstrip("0") or "0") if name.isdigit() else name


def agreement(score: Any, human: Any) -> dict[str, Any]:
    """Return a metric's figures: its correlations with people's ratings, and the pairwise accuracy."""
    of_all, pairs = correlation(score, human), pair_accuracy(score, human)
    figures = {"pearson": of_all.pearson, "spearman": of_all.spearman, "kendall": of_all.kendall}
    return {"n": of_all.n, **figures, "accuracy": pairs.accuracy, "epsilon": pairs.epsilon}


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


GENAI = MetricBenchmark(
    "genai", "genai_image.json; or a table with item, model, human and skills", GenAiSettings, tables
)
