"""`scoregate bench gecko2k`: Gecko (Wiles et al. 2024), metrics against people in four templates."""

import argparse
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scoregate.cli.bench.data import add_data, columns, metrics_of_files, read, worth
from scoregate.cli.bench.genai import by_skill
from scoregate.cli.bench.judges import Scores, Tags, accuracies, correlations, orderings
from scoregate.cli.evaluate.outcome import share
from scoregate.cli.evaluate.sxs import means
from scoregate.cli.evaluate.sxs import votes_of as votes_in
from scoregate.cli.evaluate.templates import COLUMNS, answers_of

if TYPE_CHECKING:
    from scoregate.evaluation import Table
    from scoregate.evaluation.sxs import Majorities

HELP = "Gecko2K: metrics against people, point by point, side by side and in the generators' order"
TEMPLATES = ("wl", "likert", "dsg")
OWN = {*TEMPLATES, "prompt_id", "item", "model", "prompt_type", "dataset_id"}
SYNTHETIC = "Gecko(S)"  # its prompts have skills


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_data(parser, "prompts.csv: prompt_id, prompt_type, dataset_id", by_key=True)
    add = parser.add_argument
    what = "raters' answers, as of `evaluate templates`; or the pictures' scores in columns wl, likert, dsg"
    add("--answers", type=Path, metavar="FILE", help=what)
    add("--votes", type=Path, metavar="FILE", help="side-by-side votes, as of `evaluate sxs`")
    what = "only prompts with less disagreement than this share of the largest, by DATA (the paper: 0.5)"
    add("--reliable", type=share, metavar="SHARE", help=what)
    add("--alpha", type=share, default=0.001, metavar="A", help="significant below it (default 0.001)")


def tables(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return point-wise correlation, side-by-side accuracy, order and means, by the prompts' tags."""
    from scoregate.evaluation import BadInput

    tags = tags_of(arguments.data, arguments.reliable)
    people = dict(people_of(arguments.answers)) if arguments.answers else {}
    votes = votes_of(arguments.votes) if arguments.votes else {}
    metrics, shown, turned = scored(arguments)
    if not (people or votes):
        raise BadInput("no ratings to compare with: name a file by --answers or --votes")
    judges = people | metrics
    asked = {item for scores in judges.values() for item, _ in scores} | {item for item, _, _ in votes}
    if unknown := asked - tags.keys():
        raise BadInput(f"{arguments.data}: there is no prompt {min(unknown)}")
    found = {
        "metrics": correlations(metrics, people, tags),
        "sxs": accuracies(judges, votes, tags),
        "ordering": orderings(metrics, people, votes, tags, arguments.alpha),
        "means": [row for name, each in (people | shown).items() for row in means_of(name, each, tags)],
    }
    for row in (*found["metrics"], *found["sxs"], *found["ordering"]):
        if row.get("metric", row.get("judge")) in turned:
            row["lower_is_better"] = True
    return {"prompts": sum(map(bool, tags.values()))} | {name: rows for name, rows in found.items() if rows}


def tags_of(path: Path, reliable: float | None) -> Tags:
    """Return the set of each prompt, and in Gecko(S) its skill; none if it is not *reliable*."""
    from scoregate.evaluation import BadInput

    table = read(path)
    kept = table.labels(f"max_disagreement_less_{reliable:g}") if reliable else [1.0] * len(table.records)
    rows = zip(items(table), table.names("prompt_type"), table.names("dataset_id"), kept, strict=True)
    found: dict[str, Sequence[str]] = {}
    for item, kind, source, keep in rows:
        if item in found:
            raise BadInput(f"{path}: prompt {item} is there twice")
        skill = [source.partition(":")[0]] if kind == SYNTHETIC else []
        found[item] = [kind, *skill] if keep == 1 else []
    return found


def item_column(table: "Table") -> str:
    return "item" if "item" in table.records[0].values else "prompt_id"


def items(table: "Table") -> list[str]:
    """Return the prompt of each row."""
    return table.names(item_column(table))


def pictures(table: "Table") -> list[tuple[str, str]]:
    """Return the prompt and the generator of each row."""
    return list(zip(items(table), table.names("model"), strict=True))


def people_of(path: Path) -> Iterator[tuple[str, Scores]]:
    """Yield people's scores by template, from raters' answers or as they are."""
    from scoregate.evaluation import BadInput
    from scoregate.evaluation.templates import scores

    table = read(path)
    held = table.records[0].values
    if "template" in held:
        names = {name: name for name in COLUMNS} | {"item": item_column(table), "unit": None}
        with columns(path):
            yield from scores(answers_of(argparse.Namespace(**names), table)).items()
    elif not (found := [name for name in TEMPLATES if name in held]):
        raise BadInput(f"{path}: no column template, and none of {', '.join(TEMPLATES)}")
    else:
        yield from ((name, means(pictures(table), table.numbers(name))) for name in found)


def votes_of(path: Path) -> "Majorities":
    """Return the vote of the majority of raters about each two pictures."""
    from scoregate.evaluation.sxs import majorities

    table = read(path)
    names = {name: name for name in ("a", "b", "vote")} | {"item": item_column(table), "cluster": None}
    names["rater"] = "rater" if "rater" in table.records[0].values else None
    with columns(path):
        return majorities(votes_in(argparse.Namespace(**names), table)[0])


def scored(arguments: argparse.Namespace) -> tuple[dict[str, Scores], dict[str, Scores], set[str]]:
    """
    Return the scores of each metric, of all files, with higher ones better; and as they stand there.

    The third are the metrics that differ in this.
    """
    places: dict[str, list[tuple[str, str]]] = defaultdict(list)
    higher: dict[str, list[float]] = defaultdict(list)
    stands: dict[str, list[float]] = defaultdict(list)
    turned = set[str]()
    for table, metric in metrics_of_files(arguments, OWN):
        places[metric] += pictures(table)
        higher[metric] += worth(arguments, table, metric).tolist()
        turned |= {metric} if table.turned else set()
        stands[metric] += table.numbers(metric).tolist()

    def by_picture(values: Mapping[str, list[float]]) -> dict[str, Scores]:
        return {name: means(places[name], values[name]) for name in places}

    return by_picture(higher), by_picture(stands), turned


def means_of(name: str, scores: Scores, tags: Tags) -> list[dict[str, Any]]:
    """Return a row for each tag, with the generators' means."""
    kept = [place for place in scores if tags[place[0]]]
    models, of_rows = [model for _, model in kept], [tags[item] for item, _ in kept]
    return by_skill(name, [scores[place] for place in kept], models, of_rows)
