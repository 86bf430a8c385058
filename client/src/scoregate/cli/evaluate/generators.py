"""Figures of generators: their order, their means, votes side by side, and GenEval's summary."""

import argparse
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from scoregate.cli.arguments import share
from scoregate.cli.evaluate.outcome import (
    Cells,
    Outcome,
    add_bootstrap,
    add_columns,
    add_lower,
    add_scale,
    add_table,
    caution,
    cluster_of,
    compared,
    drawings,
    interval_of,
    label,
    outcome,
    scale_of,
)
from scoregate.evaluation import BadColumn, BadInput, Table, geneval, ordering
from scoregate.evaluation.geneval import by_prompt, sample_of
from scoregate.evaluation.raters import levels
from scoregate.evaluation.sxs import (
    Majorities,
    Vote,
    choices,
    in_order,
    majorities,
    once,
    points,
    side_by_side,
    voted,
)
from scoregate.evaluation.sxs import sample_of as of_points
from scoregate.evaluation.tables import read_table
from scoregate.records import json_cell


def add_ordering(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser)
    add_lower(parser)
    columns = {
        "value": "the scores or ratings; several of an item are averaged",
        "model": "the generator",
        "item": "what generators share, such as the prompt",
    }
    add_columns(parser, columns)
    add_scale(parser)
    add = parser.add_argument
    add("--alpha", type=share, default=0.001, metavar="A", help="significant below it (default 0.001)")
    add("--zero-method", choices=["wilcox", "pratt"], default="wilcox", help="for equal values")
    what = "of two that differ, the one with the larger sum of ranks (default), or mean, as in Gecko"
    add("--better", choices=["ranks", "means"], default="ranks", help=what)
    add(
        "--human",
        metavar="COLUMN",
        help="people's ratings, to compare relations with; --scale is theirs then",
    )


def of_ordering(arguments: argparse.Namespace, table: Table) -> Outcome:
    """Return the relation of every pair, and the order by mean."""
    columns: list[Any] = [table.worth(arguments.value, lower=arguments.lower_is_better)]
    columns += [table.texts(arguments.model), table.texts(arguments.item)]
    columns += [table.numbers(arguments.human)] if arguments.human else []
    value, model, item, *human = table.complete(*columns)
    found = ordering(
        value,
        model,
        item,
        scale=scale_of(arguments),
        alpha=arguments.alpha,
        zero_method=arguments.zero_method,
        better=arguments.better,
        human=human[0] if human else None,
    )

    def draw(axes: Any) -> None:
        sign = {">": 1, "=": 0, "<": -1}
        known = {(pair.a, pair.b): sign[pair.relation] for pair in found.pairs}
        cells = [[known.get((a, b), -known.get((b, a), 0)) for b in found.order] for a in found.order]
        axes.imshow(cells, cmap="RdYlGn", vmin=-1, vmax=1)
        for row, line in enumerate(cells):
            for column, relation in enumerate(line):
                axes.text(column, row, "" if row == column else "<=>"[relation + 1], ha="center", va="center")
        names = [label(name) for name in found.order]
        axes.set_xticks(range(len(names)), names, rotation=45, ha="right")
        axes.set_yticks(range(len(names)), names)
        axes.set_title(f"{label(arguments.value)}, p < {arguments.alpha:g}")

    return outcome(table, draw, found)


def add_means(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser)
    add_columns(parser, {"metric": "the scores"})
    parser.add_argument("--model", required=True, metavar="COLUMN", help="the generator")


def of_means(arguments: argparse.Namespace, table: Table) -> Outcome:
    """Return the means; lower scores stay as they are."""
    scores, models = table.complete(table.numbers(arguments.metric), table.texts(arguments.model))
    if not len(scores):
        raise BadColumn("metric", "no row has a score and a generator")
    found: dict[str, list[float]] = {}
    for score, model in zip(scores, models, strict=True):
        found.setdefault(model, []).append(float(score))
    means = {model: fmean(found[model]) for model in sorted(found)}

    def draw(axes: Any) -> None:
        axes.bar([label(model) for model in means], [*means.values()], color="lightsteelblue")
        axes.set_ylabel(f"mean {label(arguments.metric)}")

    return Outcome({"mean": means, "pictures": len(scores), "dropped": table.dropped}, draw)


def add_sxs(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser, "--votes")
    add = parser.add_argument
    for name, what in (("item", "the prompt"), ("a", "a generator"), ("b", "the other generator")):
        add(f"--{name}", default=name, metavar="COLUMN", help=f"{what} (default {name})")
    add("--vote", default="vote", metavar="COLUMN", help="1 or a, -1 or b, 0 or unsure (default vote)")
    add("--rater", metavar="COLUMN", help="who voted: adds Krippendorff's alpha")
    add("--alpha", type=share, default=0.001, metavar="A", help="significant below it (default 0.001)")
    add("--scores", type=Path, metavar="FILE", help="scores of the pictures, with item, model and metrics")
    what = "a column of scores; may be given several times"
    add("--metric", dest="judged", action="append", metavar="COLUMN", help=what)
    add("--model", default="model", metavar="COLUMN", help="the generator in --scores (default model)")
    add("--lower-is-better", action="store_true", help="of all these metrics")
    add_bootstrap(parser)


def of_sxs(arguments: argparse.Namespace, table: Table) -> Outcome:
    """Return the relation of each two generators, and the accuracy of each metric."""
    cluster = cluster_of(arguments, table, "item", table.texts(arguments.item))
    names = {name: getattr(arguments, name) for name in ("item", "a", "b", "vote", "rater")}
    votes, rater, together = votes_of(table, together=cluster.cells, **names)
    found = majorities(votes)
    pairs = side_by_side(found, arguments.alpha)
    content: dict[str, Any] = {
        "comparisons": len(found),
        "preferences": sum(map(bool, found.values())),
        "votes": len(votes),
        "unsure": sum(not vote for _, vote in votes) / len(votes),
        "pairs": [asdict(pair) for pair in pairs],
    }
    if rater:
        units = ["\0".join(place) for place, _ in votes]
        content["alpha"] = levels(units, rater, [vote for _, vote in votes])
    if arguments.judged:
        of_item = {item: cell for ((item, _, _), _), cell in zip(votes, together, strict=True)}
        content |= accuracies(arguments, found, of_item)
        drawn_by = {"cluster": cluster.name, "clusters": len({*of_item.values()})}
        content |= drawn_by if arguments.bootstrap else {}
    content["dropped"] = table.dropped

    def draw(axes: Any) -> None:
        labels = [f"{pair.a} : {pair.b}" for pair in pairs]
        left = [0.0] * len(pairs)
        for name in ("wins_a", "unsure", "wins_b"):
            shares = [getattr(pair, name) / pair.items for pair in pairs]
            axes.barh(labels, shares, left=left, label=name)
            left = [one + other for one, other in zip(left, shares, strict=True)]
        axes.set_xlabel("share of items")
        axes.legend()

    return Outcome(content, draw)


def votes_of(
    table: Table,
    *,
    item: str = "item",
    a: str = "a",
    b: str = "b",
    vote: str = "vote",
    rater: str | None = None,
    together: Cells | None = None,
) -> tuple[list[Vote], list[str], list[str]]:
    """
    Return the votes of the complete rows, the rater of each if there is a column of raters, and *together*.

    Args:
        item, a, b, vote, rater: columns.
        together: what is drawn together in a bootstrap, for each row; by default its item.

    Raises:
        BadColumn: a rater voted twice about the same two pictures, or as `in_order`.
    """
    texts = [table.texts(name) for name in (vote, item, a, b, rater) if name]
    answers, items, left, right, *raters, drawn = table.complete(*texts, [*(together or texts[1])])
    votes = in_order(items, left, right, table.each(vote, voted, answers))
    if raters:
        once(votes, raters[0])
    return votes, raters[0] if raters else [], drawn


def accuracies(
    arguments: argparse.Namespace, votes: Majorities, of_item: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the accuracy of each metric, and the differences of metrics."""
    sample = partial(of_points, cluster=of_item)
    scores, turned = judged(arguments)
    given = {metric: points(votes, of_metric) for metric, of_metric in scores.items()}
    rows = [
        {"metric": metric, **asdict(choices(votes, of_metric))}
        | interval_of(arguments, sample(given[metric]))
        | caution(len(given[metric]), "comparison")
        | ({"lower_is_better": True} if metric in turned else {})
        for metric, of_metric in scores.items()
    ]
    return {"accuracy": rows} | compared(arguments, given, sample, "comparison")


def judged(arguments: argparse.Namespace) -> tuple[dict[str, dict[tuple[str, str], float]], set[str]]:
    """
    Return the scores of each metric by item and generator, the mean of several; and the negated metrics.

    Raises:
        BadInput: there is no file of scores, or it lacks a column.
    """
    if not arguments.scores:
        raise BadInput("--metric needs --scores, the file with its scores")
    scores = read_table(arguments.scores)
    places = zip(scores.texts(arguments.item), scores.texts(arguments.model), strict=True)
    keys = list(places)
    found, turned = {}, set[str]()
    for metric in dict.fromkeys(arguments.judged):
        found[metric] = mean_by_picture(keys, scores.worth(metric, lower=arguments.lower_is_better))
        turned |= {metric} if scores.turned else set()
    return found, turned


def mean_by_picture(keys: Any, values: Any) -> dict[tuple[str, str], float]:
    """Return the mean of the values of each key; those without a value are left out."""
    found: dict[tuple[str, str], list[float]] = {}
    for (item, model), value in zip(keys, values, strict=True):
        if item is not None and model is not None and value == value:
            found.setdefault((item, model), []).append(float(value))
    return {key: fmean(each) for key, each in found.items()}


def add_geneval(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser, "--results")
    add = parser.add_argument
    add("--correct", default="correct", metavar="COLUMN", help="the verdict (default correct)")
    add("--human", metavar="COLUMN", help="people's verdict, for kappa (default human, where it is there)")
    add_bootstrap(parser)


def of_geneval(arguments: argparse.Namespace, table: Table) -> Outcome:
    """Return the six tasks, their mean, and the prompts."""
    described(table)
    once_each(table)
    human = arguments.human
    if human is None and table.has("human"):
        human = "human"
    columns: list[Any] = [table.texts("tag"), table.texts("prompt"), table.labels(arguments.correct)]
    cluster = cluster_of(arguments, table, "prompt", prompts(*columns[:2]))
    tag, prompt, correct, together, *people = table.complete(
        *columns, [*cluster.cells], *([table.labels(human)] if human else [])
    )
    found = geneval(tag, prompt, correct, people[0] if people else None)
    of_prompt = dict(zip(zip(tag, prompt, strict=True), together, strict=True))
    drawn = drawings(arguments, sample_of(by_prompt(tag, prompt, correct), of_prompt))

    def draw(axes: Any) -> None:
        axes.barh(
            [*found.tasks, "overall"], [*(each or 0 for each in found.tasks.values()), found.overall or 0]
        )
        axes.invert_yaxis()
        axes.set_xlim(0, 1)
        axes.set_xlabel("correct pictures")

    return outcome(table, draw, found, drawn=drawn, cluster=cluster.name)


def prompts(tags: Cells, texts: Cells) -> Cells:
    """Return the unit of each row, the prompt of a task."""
    return [tag and text and f"{tag}: {text}" for tag, text in zip(tags, texts, strict=True)]


def once_each(table: Table) -> None:
    """Raise `BadInput` if two rows are about the same file."""
    seen = Counter(record.values["filename"] for record in table.records if "filename" in record.values)
    if repeated := [name for name, count in seen.items() if count > 1]:
        raise BadInput(f"{table.path}, column filename: {repeated[0]} has {seen[repeated[0]]} rows")


def described(table: Table) -> None:
    """
    Copy `tag` and `prompt` to rows without them.

    They are those of `metadata`, or in a line of `scoregate batch` of `geneval`'s options or details.
    """
    for place, record in enumerate(table.records):
        values = record.values
        sources = [mapping(values.get("metadata"))]
        sources += [mapping(mapping(values.get(name)).get("geneval")) for name in ("own_options", "details")]
        known = {
            name: source[name]
            for source in reversed(sources)
            for name in ("tag", "prompt")
            if source.get(name) is not None
        }
        missing = {name: value for name, value in known.items() if values.get(name) is None}
        table.records[place] = replace(record, values={**values, **missing})


def mapping(cell: Any) -> Mapping[str, Any]:
    """Return an object, or that of a text in JSON; an empty one for any other cell."""
    found = json_cell(cell)
    return found if isinstance(found, Mapping) else {}
