"""Figures of a metric: against people's ratings, right and wrong pictures, preferences, and known errors."""

import argparse
from dataclasses import replace
from typing import Any

from scoregate.cli.evaluate.outcome import (
    Cluster,
    Outcome,
    add_bootstrap,
    add_columns,
    add_lower,
    add_table,
    cluster_of,
    drawings,
    label,
    outcome,
    rows,
)
from scoregate.evaluation import Table, auroc, correlation, pair_accuracy, preference, ts2, winoground
from scoregate.evaluation.agreement import auroc_sample, correlation_sample, roc
from scoregate.evaluation.bootstrap import together
from scoregate.evaluation.pairs import MOST, pair_accuracies, preferences
from scoregate.evaluation.winoground import CHANCE, choices, sample_of

VERSIONS = ("released", "printed", "current")


def add_agreement(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser)
    add_lower(parser)
    add_columns(parser, {"metric": "the scores", "human": "people's ratings"})
    add_bootstrap(parser)
    parser.add_argument("--group", metavar="COLUMN", help="compare only pairs within it, such as the prompt")
    what = "accuracy with --group: the mean over groups, as in the paper (default), or of all their pairs"
    parser.add_argument("--average", choices=["groups", "pairs"], default="groups", help=what)


def of_agreement(arguments: argparse.Namespace, table: Table) -> Outcome:
    """Return the figures of correlation and of pairs."""
    columns = [table.worth(arguments.metric, lower=arguments.lower_is_better), table.numbers(arguments.human)]
    group = [table.texts(arguments.group)] if arguments.group else []
    cluster = cluster_of(arguments, table, "row", rows(table))
    if cluster.name == "row" and arguments.group:
        cluster = Cluster(arguments.group, group[0])
    metric, human, drawn_by, *groups = table.complete(*columns, [*cluster.cells], *group)
    grouped = groups[0] if groups else None
    of_pairs = pair_accuracy(metric, human, grouped, average=arguments.average)

    few = of_pairs.pairs <= MOST
    sample = correlation_sample(metric, human, drawn_by)
    if arguments.bootstrap and few:
        pairs = pair_accuracies(metric, human, grouped, cluster=drawn_by, average=arguments.average)
        sample = together(sample, pairs)
    drawn = drawings(arguments, sample)

    def draw(axes: Any) -> None:
        axes.scatter(metric, human, s=8, alpha=0.4)
        axes.set_xlabel(label(arguments.metric))
        axes.set_ylabel(label(arguments.human))
        axes.set_title(f"pairwise accuracy {of_pairs.accuracy:.4f}")

    found = outcome(table, draw, correlation(metric, human), of_pairs, drawn=drawn, cluster=cluster.name)
    if drawn and not few:
        found.content["no_interval"] = f"of accuracy: {of_pairs.pairs:,} pairs, more than {MOST:,}"
    return found


def add_auroc(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser)
    add_lower(parser)
    add_columns(parser, {"metric": "the scores"})
    add_bootstrap(parser)
    parser.add_argument(
        "--label",
        "--human",
        required=True,
        metavar="COLUMN",
        help="1 or true of a right picture, else 0 or false",
    )


def of_auroc(arguments: argparse.Namespace, table: Table) -> Outcome:
    """Return the area."""
    cluster = cluster_of(arguments, table, "row", rows(table))
    metric, truth, together = table.complete(
        table.worth(arguments.metric, lower=arguments.lower_is_better),
        table.labels(arguments.label),
        [*cluster.cells],
    )
    found = auroc(metric, truth)
    drawn = drawings(arguments, auroc_sample(metric, truth, together))

    def draw(axes: Any) -> None:
        axes.plot(*roc(metric, truth))
        axes.plot([0, 1], [0, 1], color="grey", linestyle="--")
        axes.set_xlabel("false-accept rate")
        axes.set_ylabel("true-accept rate")
        axes.set_title(f"{label(arguments.metric)}, area {found.auroc:.4f}")

    return outcome(table, draw, found, drawn=drawn, cluster=cluster.name)


def add_preference(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser)
    add_lower(parser)
    columns = {
        "metric": "the scores",
        "human": "a number that is larger for the picture that people prefer",
        "group": "the pictures to compare with each other, such as those of one prompt",
    }
    add_columns(parser, columns)
    add_bootstrap(parser)
    what = "accuracy of all pairs (default), or the mean over groups"
    parser.add_argument("--average", choices=["pairs", "groups"], default="pairs", help=what)


def of_preference(arguments: argparse.Namespace, table: Table) -> Outcome:
    """Return the share."""
    numbers = table.worth(arguments.metric, lower=arguments.lower_is_better), table.numbers(arguments.human)
    groups = table.texts(arguments.group)
    cluster = cluster_of(arguments, table, "row", rows(table))
    if cluster.name == "row":
        cluster = Cluster(arguments.group, groups)
    metric, human, group, together = table.complete(*numbers, groups, [*cluster.cells])
    found = preference(metric, human, group, average=arguments.average)
    sample = preferences(metric, human, group, cluster=together, average=arguments.average)
    drawn = drawings(arguments, sample)

    def draw(axes: Any) -> None:
        axes.bar(["correct", "tied", "wrong"], [found.correct, found.ties_metric, found.wrong])
        axes.set_ylabel("pairs")
        axes.set_title(f"{label(arguments.metric)}, accuracy {found.accuracy:.4f}")

    return outcome(table, draw, found, drawn=drawn, cluster=cluster.name)


def add_ts2(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser)
    add_lower(parser)
    add_columns(
        parser,
        {
            "metric": "the scores",
            "graph": "the graph, one for each prompt",
            "node": "the node; its first digits say how many errors",
        },
    )
    add_version(parser, required=True)


def add_version(parser: argparse.ArgumentParser, **more: Any) -> None:
    """Declare which of the authors' definitions to use, and the graphs to skip."""
    what = "the code of the paper's tables (also: paper), its equations, or the code today"
    parser.add_argument("--version", type=version, choices=VERSIONS, help=what, **more)
    what = "leave it out of the means, not of std; may be given several times (the paper: 164)"
    parser.add_argument("--skip-graph", action="append", metavar="GRAPH", help=what)


def version(text: str) -> str:
    return "released" if text == "paper" else text


def of_ts2(arguments: argparse.Namespace, table: Table) -> Outcome:
    """Return the figures of all graphs, and of the parts of the released data."""
    scores = table.worth(arguments.metric, lower=arguments.lower_is_better)
    graphs, nodes = table.names(arguments.graph), table.names(arguments.node)
    found = ts2(scores, graphs, nodes, arguments.version, arguments.skip_graph or ())

    def draw(axes: Any) -> None:
        parts: dict[str, Any] = {"all": vars(found)} | found.partitions
        for place, name in enumerate(("rank", "sep", "delta")):
            at = [number + place / 4 for number in range(len(parts))]
            axes.bar(at, [part[name] for part in parts.values()], width=0.25, label=name)
        axes.set_xticks([number + 0.25 for number in range(len(parts))], list(parts))
        axes.set_title(label(arguments.metric))
        axes.legend()

    return outcome(table, draw, found)


def add_winoground(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_table(parser)
    add_bootstrap(parser)
    add_lower(parser)
    add_columns(parser, {"metric": "the scores, four for each item", "item": "the item"})
    for name, what in (("caption", "the caption"), ("image", "the picture")):
        parser.add_argument(
            f"--{name}", default=name, metavar="COLUMN", help=f"{what}, 0 or 1 (default {name})"
        )


def of_winoground(arguments: argparse.Namespace, table: Table) -> Outcome:
    """Return the three shares."""
    texts = [table.texts(column) for column in (arguments.item, arguments.caption, arguments.image)]
    scores = table.worth(arguments.metric, lower=arguments.lower_is_better)
    cluster = cluster_of(arguments, table, "item", texts[0])
    left_out = replace(table, records=[*table.incomplete])
    every = {*texts[0], *(left_out.texts(arguments.item) if left_out.records else ())} - {None}
    metric, item, caption, image, together = table.complete(scores, *texts, [*cluster.cells])
    found = winoground(metric, item, caption, image)
    found = replace(found, incomplete=len(every) - found.items)
    of_item = dict(zip(item, together, strict=True))
    drawn = drawings(arguments, sample_of(choices(metric, item, caption, image), of_item))

    def draw(axes: Any) -> None:
        axes.bar(list(CHANCE), [getattr(found, name) for name in CHANCE])
        for place, chance in enumerate(CHANCE.values()):
            dots = {"color": "black", "linestyle": "--"}
            axes.plot(
                [place - 0.4, place + 0.4], [chance, chance], label="chance" if not place else None, **dots
            )
        axes.set_ylim(0, 1)
        axes.set_title(f"{label(arguments.metric)}, {found.items} items")
        axes.legend()

    size = found.items, "item"
    return outcome(table, draw, found, drawn=drawn, cluster=cluster.name, size=size)
