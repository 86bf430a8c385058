"""Figures of a metric: against people's ratings, right and wrong pictures, preferences, and known errors."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from scoregate.evaluation.agreement import auroc, auroc_sample, correlation, correlation_sample, roc
from scoregate.evaluation.bootstrap import Bootstrap, Cluster, cluster_of, drawings, together
from scoregate.evaluation.outcome import FigureOutcome, OfMetrics, label, outcome, rows
from scoregate.evaluation.pair_accuracy import (
    MAX_PAIRS,
    Average,
    pair_accuracies,
    pair_accuracy,
    preference,
    preferences,
)
from scoregate.evaluation.tables import Table
from scoregate.evaluation.ts2 import Version, ts2
from scoregate.evaluation.winoground import CHANCE, choices, sample_of, winoground
from scoregate.settings import Column, MetricNames, Setting

VERSION = "the code of the paper's tables (also: paper), its equations, or the code today"
SKIP_GRAPH = "leave it out of the means, not of std; may be given several times (the paper: 164)"


@dataclass(frozen=True, kw_only=True)
class AgreementSettings(OfMetrics, Bootstrap):
    r"""
    Settings of the agreement with people.

    * `pearson`, `spearman`, `kendall`: Correlation of metric and rating: linear, of ranks, and tau-b.
    * `accuracy`: acc\*_eq, the share of pairs of pictures that the metric orders, or ties, as people do;
      `accuracy_at_0` if only equal scores are tied.
    * `epsilon`: The distance up to which scores are tied: the smallest one with the best accuracy.
    * `concordant`, `discordant`, `ties_…`: Pairs in the same order, in the opposite order, or tied.

    Accuracy and epsilon are from Deutsch, Foster and Freitag 2023 ([arXiv
    2305.14324](https://arxiv.org/abs/2305.14324)). With `--group COLUMN` pairs are within a group, such as
    a prompt, and `accuracy` is the mean over the groups, with one epsilon for all, as in the paper; with
    `--average pairs` each pair has the same weight. Correlations are over all rows.
    """

    human: Annotated[str, Column("people's ratings")]
    group: Annotated[str | None, Column("compare only pairs within it, such as the prompt")] = None
    average: Annotated[
        Average,
        Setting(
            "accuracy with --group: the mean over groups, as in the paper (default), or of all their pairs"
        ),
    ] = "groups"


def of_agreement(settings: AgreementSettings, table: Table, most_pairs: int = MAX_PAIRS) -> FigureOutcome:
    """Return the figures of correlation and of pairs; of more than *most_pairs* without an interval."""
    columns = [table.worth(settings.metric, lower=settings.lower_is_better), table.numbers(settings.human)]
    group = [table.texts(settings.group)] if settings.group else []
    cluster = cluster_of(settings, table, "row", rows(table))
    if cluster.name == "row" and settings.group:
        cluster = Cluster(settings.group, group[0])
    metric, human, drawn_by, *groups = table.complete(*columns, [*cluster.cells], *group)
    grouped = groups[0] if groups else None
    of_pairs = pair_accuracy(metric, human, grouped, average=settings.average)

    few = of_pairs.pairs <= most_pairs
    sample = correlation_sample(metric, human, drawn_by)
    if settings.bootstrap and few:
        pairs = pair_accuracies(metric, human, grouped, cluster=drawn_by, average=settings.average)
        sample = together(sample, pairs)
    drawn = drawings(settings, sample)

    def draw(axes: Any) -> None:
        axes.scatter(metric, human, s=8, alpha=0.4)
        axes.set_xlabel(label(settings.metric))
        axes.set_ylabel(label(settings.human))
        axes.set_title(f"pairwise accuracy {of_pairs.accuracy:.4f}")

    found = outcome(table, draw, correlation(metric, human), of_pairs, drawn=drawn, cluster=cluster.name)
    if drawn and not few:
        found.content["no_interval"] = f"of accuracy: {of_pairs.pairs:,} pairs, more than {most_pairs:,}"
    return found


@dataclass(frozen=True, kw_only=True)
class AurocSettings(OfMetrics, Bootstrap):
    """
    Settings of the area under the ROC curve.

    The probability that a right picture (label 1 or true) has a higher score than a wrong one (0 or false);
    a tie counts half. [calibrate](cli.md#calibrate) finds a threshold.
    """

    label: Annotated[str, Column("1 or true of a right picture, else 0 or false", ("--label", "--human"))]


def of_auroc(settings: AurocSettings, table: Table) -> FigureOutcome:
    """Return the area."""
    cluster = cluster_of(settings, table, "row", rows(table))
    metric, truth, together = table.complete(
        table.worth(settings.metric, lower=settings.lower_is_better),
        table.labels(settings.label),
        [*cluster.cells],
    )
    found = auroc(metric, truth)
    drawn = drawings(settings, auroc_sample(metric, truth, together))

    def draw(axes: Any) -> None:
        axes.plot(*roc(metric, truth))
        axes.plot([0, 1], [0, 1], color="grey", linestyle="--")
        axes.set_xlabel("false-accept rate")
        axes.set_ylabel("true-accept rate")
        axes.set_title(f"{label(settings.metric)}, area {found.auroc:.4f}")

    return outcome(table, draw, found, drawn=drawn, cluster=cluster.name)


@dataclass(frozen=True, kw_only=True)
class PreferenceSettings(OfMetrics, Bootstrap):
    """
    Settings of the binary accuracy.

    How often the metric prefers the better picture of a prompt.

    `--human` is any number that is larger for the better picture. Pairs that people tie do not count
    (`ties_human`). Equal scores are wrong; in `accuracy_ties_half` half right. `single` counts groups of
    one picture. `--average groups` prints the mean over groups.
    """

    human: Annotated[str, Column("a number that is larger for the picture that people prefer")]
    group: Annotated[str, Column("the pictures to compare with each other, such as those of one prompt")]
    average: Annotated[
        Literal["pairs", "groups"], Setting("accuracy of all pairs (default), or the mean over groups")
    ] = "pairs"


def of_preference(settings: PreferenceSettings, table: Table) -> FigureOutcome:
    """Return the share."""
    numbers = table.worth(settings.metric, lower=settings.lower_is_better), table.numbers(settings.human)
    groups = table.texts(settings.group)
    cluster = cluster_of(settings, table, "row", rows(table))
    if cluster.name == "row":
        cluster = Cluster(settings.group, groups)
    metric, human, group, together = table.complete(*numbers, groups, [*cluster.cells])
    found = preference(metric, human, group, average=settings.average)
    sample = preferences(metric, human, group, cluster=together, average=settings.average)
    drawn = drawings(settings, sample)

    def draw(axes: Any) -> None:
        axes.bar(["correct", "tied", "wrong"], [found.correct, found.ties_metric, found.wrong])
        axes.set_ylabel("pairs")
        axes.set_title(f"{label(settings.metric)}, accuracy {found.accuracy:.4f}")

    return outcome(table, draw, found, drawn=drawn, cluster=cluster.name)


def version_of(text: str) -> str:
    """Return the version that *text* names."""
    return "released" if text == "paper" else text


@dataclass(frozen=True, kw_only=True)
class Ts2Settings(OfMetrics):
    """
    Settings of T2IscoreScore.

    T2IscoreScore (Saxon et al. 2024, [arXiv 2404.04251](https://arxiv.org/abs/2404.04251)). A graph belongs
    to one prompt. Each node has pictures with as many errors as its name begins with: `0`, `1a`, `1b`, `2`.

    * `rank`: Spearman's correlation of errors and score with its sign reversed. 1: more errors, lower
      score.
    * `sep`: Kolmogorov-Smirnov statistic of two levels' scores. 1: they do not overlap.
    * `delta`, `delta_raw`: The fall of the score, with and without a division by `std`, the sample standard
      deviation of all scores.
    * `undefined`: Graphs without a walk (one node of each level) of two scores.
    * `partitions`: The released data's three parts by id: up to 110 synthetic, 111 to 135 natural, from 136
      real errors.

    `--version` must name one of three versions: `released`, the code of the paper's tables (also `paper`),
    `printed`, its equations 2, 4 and 5, or `current`, the authors' code today.

    * Walks visit level 0 twice in `released`, and each level once in the others.
    * `rank` is the mean over walks, weighted by their scores, and 0 if one side is constant; in `printed` it
      is the plain mean.
    * `sep` is the mean over pairs of levels of a walk, then over walks. In `printed` it is that over
      neighbouring nodes of all walks, in `current` over pairs of nodes of different levels.
    * `delta` is the mean fall from a level to the next, then over walks, divided by `std`. In `printed` it is
      that between neighbouring nodes, in `current` over pairs of nodes, not divided.
    * A picture without a score is left out; in `current` its node is left out of `sep` and `delta`.

    `--skip-graph` excludes a graph, as the paper's tables do with 164. `released` reproduces them, except
    the delta of the three parts.
    """

    graph: Annotated[str, Column("the graph, one for each prompt")]
    node: Annotated[str, Column("the node; its first digits say how many errors")]
    version: Annotated[Version, Setting(VERSION, parse=version_of)]
    skip_graph: Annotated[Sequence[str] | None, Setting(SKIP_GRAPH, metavar="GRAPH", several=True)] = None


def of_ts2(settings: Ts2Settings, table: Table) -> FigureOutcome:
    """Return the figures of all graphs, and of the parts of the released data."""
    scores = table.worth(settings.metric, lower=settings.lower_is_better)
    graphs, nodes = table.names(settings.graph), table.names(settings.node)
    found = ts2(scores, graphs, nodes, settings.version, settings.skip_graph or ())

    def draw(axes: Any) -> None:
        parts: dict[str, Any] = {"all": vars(found)} | found.partitions
        for place, name in enumerate(("rank", "sep", "delta")):
            at = [number + place / 4 for number in range(len(parts))]
            axes.bar(at, [part[name] for part in parts.values()], width=0.25, label=name)
        axes.set_xticks([number + 0.25 for number in range(len(parts))], list(parts))
        axes.set_title(label(settings.metric))
        axes.legend()

    return outcome(table, draw, found)


@dataclass(frozen=True, kw_only=True)
class WinogroundSettings(OfMetrics, Bootstrap):
    """
    Settings of Winoground's scores.

    Two captions of the same words, and two pictures; caption 0 belongs to picture 0. An item has four rows,
    with 0 or 1 in the columns `caption` and `image` (or those of `--caption` and `--image`); `incomplete`
    counts items that lack one.

    `text`: for each picture the right caption has the higher score. `image`: for each caption the right
    picture has. `group`: both. Chance is 1/4, 1/4 and 1/6, and equal scores are wrong.
    """

    metrics: Annotated[Sequence[str], MetricNames("the column of its scores, four for each item")]
    item: Annotated[str, Column("the item")]
    caption: Annotated[str, Column("the caption, 0 or 1")] = "caption"
    image: Annotated[str, Column("the picture, 0 or 1")] = "image"


def of_winoground(settings: WinogroundSettings, table: Table) -> FigureOutcome:
    """Return the three shares."""
    texts = [table.texts(column) for column in (settings.item, settings.caption, settings.image)]
    scores = table.worth(settings.metric, lower=settings.lower_is_better)
    cluster = cluster_of(settings, table, "item", texts[0])
    left_out = replace(table, records=[*table.incomplete])
    every = {*texts[0], *(left_out.texts(settings.item) if left_out.records else ())} - {None}
    metric, item, caption, image, together = table.complete(scores, *texts, [*cluster.cells])
    found = winoground(metric, item, caption, image)
    found = replace(found, incomplete=len(every) - found.items)
    of_item = dict(zip(item, together, strict=True))
    drawn = drawings(settings, sample_of(choices(metric, item, caption, image), of_item))

    def draw(axes: Any) -> None:
        axes.bar(list(CHANCE), [getattr(found, name) for name in CHANCE])
        for place, chance in enumerate(CHANCE.values()):
            dots = {"color": "black", "linestyle": "--"}
            axes.plot(
                [place - 0.4, place + 0.4], [chance, chance], label="chance" if not place else None, **dots
            )
        axes.set_ylim(0, 1)
        axes.set_title(f"{label(settings.metric)}, {found.items} items")
        axes.legend()

    size = found.items, "item"
    return outcome(table, draw, found, drawn=drawn, cluster=cluster.name, size=size)
