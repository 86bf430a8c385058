"""`scoregate evaluate sxs`: which generator do raters prefer side by side, and does a metric agree?"""

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scoregate.cli.evaluate.intervals import (
    Cluster,
    add_bootstrap,
    caution,
    cluster_of,
    compared,
    interval_of,
)
from scoregate.cli.evaluate.outcome import Outcome, add_table, share

if TYPE_CHECKING:
    from scoregate.evaluation import Table
    from scoregate.evaluation.sxs import Majorities, Vote

HELP = "side-by-side votes (Gecko): generators by majority, and the accuracy of metrics"


def add_arguments(parser: argparse.ArgumentParser) -> None:
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


def evaluated(arguments: argparse.Namespace, table: "Table") -> Outcome:
    """Return the relation of each two generators, and the accuracy of each metric."""
    from scoregate.evaluation.raters import levels
    from scoregate.evaluation.sxs import majorities, side_by_side

    votes, rater, cluster = votes_of(arguments, table)
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
        of_item = {item: cell for ((item, _, _), _), cell in zip(votes, cluster.cells, strict=True)}
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


def votes_of(arguments: argparse.Namespace, table: "Table") -> "tuple[list[Vote], list[str], Cluster]":
    """
    Return the votes of the complete rows, the rater of each if there is a column of raters, and the cluster.

    Raises:
        BadColumn: a rater voted twice about the same two pictures, or as `in_order`.
    """
    from scoregate.evaluation.sxs import in_order, once, voted

    names = (arguments.item, arguments.a, arguments.b, arguments.rater)
    texts = [table.texts(name) for name in (arguments.vote, *names) if name]
    cluster = cluster_of(arguments, table, "item", texts[1])
    answers, item, a, b, *rater, together = table.complete(*texts, [*cluster.cells])
    votes = in_order(item, a, b, table.parsed(arguments.vote, answers, voted))
    if rater:
        once(votes, rater[0])
    return votes, rater[0] if rater else [], Cluster(cluster.name, together)


def accuracies(
    arguments: argparse.Namespace, votes: "Majorities", of_item: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the accuracy of each metric, and the differences of metrics."""
    from scoregate.evaluation.sxs import choices, points
    from scoregate.evaluation.sxs import sample_of as of_points

    sample_of = partial(of_points, cluster=of_item)
    scores, turned = judged(arguments)
    given = {metric: points(votes, of_metric) for metric, of_metric in scores.items()}
    rows = [
        {"metric": metric, **asdict(choices(votes, of_metric))}
        | interval_of(arguments, sample_of(given[metric]))
        | caution(len(given[metric]), "comparison")
        | ({"lower_is_better": True} if metric in turned else {})
        for metric, of_metric in scores.items()
    ]
    return {"accuracy": rows} | compared(arguments, given, sample_of, "comparison")


def judged(arguments: argparse.Namespace) -> tuple[dict[str, dict[tuple[str, str], float]], set[str]]:
    """
    Return the scores of each metric by item and generator, the mean of several; and the negated metrics.

    Raises:
        BadInput: there is no file of scores, or it lacks a column.
    """
    from scoregate.evaluation import BadInput, read

    if not arguments.scores:
        raise BadInput("--metric needs --scores, the file with its scores")
    scores = read(arguments.scores)
    places = zip(scores.texts(arguments.item), scores.texts(arguments.model), strict=True)
    keys = list(places)
    found, turned = {}, set[str]()
    for metric in dict.fromkeys(arguments.judged):
        found[metric] = means(keys, scores.worth(metric, lower=arguments.lower_is_better))
        turned |= {metric} if scores.turned else set()
    return found, turned


def means(keys: Any, values: Any) -> dict[tuple[str, str], float]:
    """Return the mean of the values of each key; those without a value are left out."""
    from statistics import fmean

    found: dict[tuple[str, str], list[float]] = {}
    for (item, model), value in zip(keys, values, strict=True):
        if item is not None and model is not None and value == value:
            found.setdefault((item, model), []).append(float(value))
    return {key: fmean(each) for key, each in found.items()}
