"""Figures of generators: their order, their means, votes side by side, and GenEval's summary."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

from scoregate.errors import ColumnError, InputError, named
from scoregate.evaluation.arrays import coded
from scoregate.evaluation.bootstrap import (
    Bootstrap,
    Cells,
    cluster_of,
    compared,
    drawings,
    uncertainty,
)
from scoregate.evaluation.geneval import by_prompt, geneval, sample_of
from scoregate.evaluation.ordering import Better, ZeroMethod, ordering
from scoregate.evaluation.outcome import (
    LOWER_HELP,
    TABLE,
    FigureOutcome,
    FigureSettings,
    OfMetrics,
    OfScores,
    OnScale,
    label,
    outcome,
    rows,
)
from scoregate.evaluation.raters import levels
from scoregate.evaluation.side_by_side import (
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
from scoregate.evaluation.side_by_side import sample_of as of_points
from scoregate.evaluation.tables import GENERATOR, Table, read_table
from scoregate.evaluation.versus import mean_of_each
from scoregate.records import json_cell
from scoregate.settings import Column, GeneratorColumn, MetricName, MetricNames, Setting, count, share


@dataclass(frozen=True, kw_only=True)
class OrderingSettings(OfScores, OnScale):
    """
    Settings of the generators' order.

    Wilcoxon's signed-rank test for every pair of generators, as in Gecko (Wiles et al. 2024, [arXiv
    2404.16820](https://arxiv.org/abs/2404.16820), section 4.2).

    * `n`, `zeros`: Items with a difference, and without one.
    * `w_plus`, `w_minus`: Sums of the ranks of the differences in favour of A, and of B.
    * `z`, `p`: The normal approximation, two-sided: ties corrected, no continuity correction.
    * `relation`: `=` if `p` is not below `--alpha` (default 0.001, since nothing corrects for many
      comparisons), else `>` if A has the larger sum of ranks and `<` if B has; with `--better means` by
      means, as Gecko does.
    * `order`, `tiers`: Generators by their mean; `tiers` has their relations (null if these contradict each
      other).
    * `agreement`: With `--human COLUMN`, to which `--scale` then applies: the share of pairs with the
      relation of people's ratings.
    * `unpaired`: Items that lack a generator, which count in other pairs. Several ratings of an item are
      averaged.
    * `--zero-method`: `wilcox` (default) drops differences of 0; `pratt` gives them ranks first.
    """

    lower_is_better: Annotated[bool, Setting(LOWER_HELP)] = False
    value: Annotated[
        str,
        MetricName(
            "the column of its scores, or of ratings; several of an item are averaged",
            ("-m", "--metric", "--value"),
        ),
    ]
    model: Annotated[str, GeneratorColumn("the generator")] = GENERATOR
    item: Annotated[str, Column("what generators share")] = "prompt"
    alpha: Annotated[float, Setting("significant below it (default 0.001)", metavar="A", parse=share)] = 0.001
    zero_method: Annotated[ZeroMethod, Setting("for equal values")] = "wilcox"
    better: Annotated[
        Better,
        Setting("of two that differ, the one with the larger sum of ranks (default), or mean, as in Gecko"),
    ] = "ranks"
    human: Annotated[
        str | None, Column("people's ratings, to compare relations with; --scale is theirs then")
    ] = None


def of_ordering(settings: OrderingSettings, table: Table) -> FigureOutcome:
    """Return the relation of every pair, and the order by mean."""
    columns: list[Any] = [table.worth(settings.value, lower=settings.lower_is_better)]
    columns += [table.texts(settings.model), table.texts(settings.item)]
    columns += [table.numbers(settings.human)] if settings.human else []
    value, model, item, *human = table.complete(*columns)
    found = ordering(
        value,
        model,
        item,
        scale=settings.scale,
        alpha=settings.alpha,
        zero_method=settings.zero_method,
        better=settings.better,
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
        axes.set_title(f"{label(settings.value)}, p < {settings.alpha:g}")

    return outcome(table, draw, found)


@dataclass(frozen=True, kw_only=True)
class MeansSettings(OfMetrics, Bootstrap):
    """
    Settings of the generators' means.

    The mean of each generator, with `--bootstrap` its interval; with `--by` a matrix of skill and
    generator. `scoregate versus` [compares generators](../guides/compare-generators.md) in pairs.
    """

    lower_is_better: bool = False
    model: Annotated[str, GeneratorColumn("the generator")] = GENERATOR
    bootstrap: Annotated[
        int, Setting("intervals from N drawings, 0 for none (default 0)", metavar="N", parse=count)
    ] = 0


def of_means(settings: MeansSettings, table: Table) -> FigureOutcome:
    """Return the means; lower scores stay as they are."""
    cluster = cluster_of(settings, table, "row", rows(table))
    columns = table.numbers(settings.metric), table.texts(settings.model), [*cluster.cells]
    scores, models, together = table.complete(*columns)
    if not len(scores):
        raise ColumnError("metric", "no row has a score and a generator")
    names, codes = coded(models)
    means, ends = mean_of_each(names, codes, coded(together)[1], scores, settings.bootstrap, settings.seed)
    content: dict[str, Any] = {"mean": means} | ({"interval": ends} if ends else {})
    content |= {"pictures": len(scores), "dropped": table.dropped}
    content |= {"cluster": cluster.name, "clusters": len({*together})} if settings.bootstrap else {}

    def draw(axes: Any) -> None:
        axes.bar([label(model) for model in means], [*means.values()], color="lightsteelblue")
        axes.set_ylabel(f"mean {label(settings.metric)}")

    return FigureOutcome(content, draw)


@dataclass(frozen=True, kw_only=True)
class SideBySideSettings(FigureSettings, Bootstrap):
    """
    Settings of votes side by side, and of metrics that are compared with them.

    Side-by-side votes, as in Gecko (section 4.3): 1 or `a` for the picture of generator `a`, -1 or `b` for
    the other one, 0 or `unsure`. The most frequent vote of an item counts, and 0 if two are equally
    frequent.

    * `wins_a`, `wins_b`, `unsure`: Items by the majority of raters. The first `unsure` is a share of votes.
    * `z`, `p`: Wilcoxon's signed-rank test of 1, 0 and -1.
    * `relation`: `>` if `p` is below `--alpha` and A is preferred more often than B and than unsure, `<` if
      B is, else `=`.
    * `accuracy`: With `--scores FILE` (columns `item`, `model` and the metrics, or people's scores in
      [other templates](figures.md#templates)) and `--metric`: as in [preference](figures.md#preference), by
      the majority. `missing` comparisons lack a score, and `compared` have all metrics.
    * `alpha`: With `--rater`: Krippendorff's alpha of the votes, 0 among them.
    """

    table: Annotated[Path, Setting(TABLE, ("--votes",), metavar="FILE")]
    item: Annotated[str, Column("the prompt")] = "item"
    a: Annotated[str, Column("a generator")] = "a"
    b: Annotated[str, Column("the other generator")] = "b"
    vote: Annotated[str, Column("1 or a, -1 or b, 0 or unsure")] = "vote"
    rater: Annotated[str | None, Column("who voted: adds Krippendorff's alpha")] = None
    alpha: Annotated[float, Setting("significant below it (default 0.001)", metavar="A", parse=share)] = 0.001
    scores: Annotated[
        Path | None, Setting("scores of the pictures, with item, model and metrics", metavar="FILE")
    ] = None
    judged: Annotated[
        Sequence[str] | None,
        MetricNames("the column of its scores; may be given several times, or with commas"),
    ] = None
    model: Annotated[str, GeneratorColumn("the generator in --scores")] = "model"
    lower_is_better: Annotated[bool, Setting("of all these metrics")] = False


def of_sxs(settings: SideBySideSettings, table: Table) -> FigureOutcome:
    """Return the relation of each two generators, and the accuracy of each metric."""
    cluster = cluster_of(settings, table, "item", table.texts(settings.item))
    names = {name: getattr(settings, name) for name in ("item", "a", "b", "vote", "rater")}
    votes, rater, together = votes_of(table, together=cluster.cells, **names)
    found = majorities(votes)
    pairs = side_by_side(found, settings.alpha)
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
    if settings.judged:
        of_item = {item: cell for ((item, _, _), _), cell in zip(votes, together, strict=True)}
        content |= accuracies(settings, found, of_item)
        drawn_by = {"cluster": cluster.name, "clusters": len({*of_item.values()})}
        content |= drawn_by if settings.bootstrap else {}
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

    return FigureOutcome(content, draw)


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
        ColumnError: a rater voted twice about the same two pictures, or as `in_order`.
    """
    texts = [table.texts(name) for name in (vote, item, a, b, rater) if name]
    answers, items, left, right, *raters, drawn = table.complete(*texts, [*(together or texts[1])])
    votes = in_order(items, left, right, table.each(vote, voted, answers))
    if raters:
        once(votes, raters[0])
    return votes, raters[0] if raters else [], drawn


def accuracies(settings: SideBySideSettings, votes: Majorities, of_item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the accuracy of each metric, and the differences of metrics."""
    sample = partial(of_points, cluster=of_item)
    scores, turned = judged(settings)
    given = {metric: points(votes, of_metric) for metric, of_metric in scores.items()}
    rows = [
        {"metric": metric, **asdict(choices(votes, of_metric))}
        | uncertainty(settings, sample(given[metric]), len(given[metric]), "comparison")
        | ({"lower_is_better": True} if metric in turned else {})
        for metric, of_metric in scores.items()
    ]
    return {"accuracy": rows} | compared(settings, given, sample, "comparison")


def judged(settings: SideBySideSettings) -> tuple[dict[str, dict[tuple[str, str], float]], set[str]]:
    """
    Return the scores of each metric by item and generator, the mean of several; and the negated metrics.

    Raises:
        InputError: there is no file of scores, or it lacks a column.
    """
    if not settings.scores:
        raise InputError(f"{named('metric')} needs {named('scores')}, the file with its scores")
    scores = read_table(settings.scores)
    places = zip(scores.texts(settings.item), scores.texts(settings.model), strict=True)
    keys = list(places)
    found, turned = {}, set[str]()
    for metric in dict.fromkeys(settings.judged or ()):
        found[metric] = mean_by_image(keys, scores.worth(metric, lower=settings.lower_is_better))
        turned |= {metric} if scores.turned else set()
    return found, turned


def mean_by_image(keys: Any, values: Any) -> dict[tuple[str, str], float]:
    """Return the mean of the values of each key; those without a value are left out."""
    found: dict[tuple[str, str], list[float]] = {}
    for (item, model), value in zip(keys, values, strict=True):
        if item is not None and model is not None and value == value:
            found.setdefault((item, model), []).append(float(value))
    return {key: fmean(each) for key, each in found.items()}


@dataclass(frozen=True, kw_only=True)
class GenEvalSettings(FigureSettings, Bootstrap):
    """
    Settings of GenEval's summary.

    GenEval's summary (Ghosh et al. 2023, [arXiv 2310.11513](https://arxiv.org/abs/2310.11513)) of its
    verdicts, a row for each picture.

    * `tasks`, `overall`: The share of correct pictures of each task, and the mean of the six. A task with
      one prompt has no interval, and then `overall` has none.
    * `images_correct`, `prompts_correct`: The share of correct pictures, and of prompts with a correct
      picture.
    * `agreement`, `kappa`: With people's verdicts (column `human`, or `--human`): the share of equal ones,
      and Cohen's kappa.

    The rows are those of GenEval's own `evaluate_images.py`: `tag`, `prompt` (or both in `metadata`),
    `correct`. `--correct geneval` reads the metric's scores from a result of `scoregate batch`. A duplicate
    `filename` is an error.
    """

    table: Annotated[Path, Setting(TABLE, ("--results",), metavar="FILE")]
    correct: Annotated[str, Column("the verdict")] = "correct"
    human: Annotated[str | None, Column("people's verdict, for kappa (default human, where it is there)")] = (
        None
    )


def of_geneval(settings: GenEvalSettings, table: Table) -> FigureOutcome:
    """Return the six tasks, their mean, and the prompts."""
    described(table)
    once_each(table)
    human = settings.human
    if human is None and table.has("human"):
        human = "human"
    columns: list[Any] = [table.texts("tag"), table.texts("prompt"), table.labels(settings.correct)]
    cluster = cluster_of(settings, table, "prompt", prompts(*columns[:2]))
    tag, prompt, correct, together, *people = table.complete(
        *columns, [*cluster.cells], *([table.labels(human)] if human else [])
    )
    found = geneval(tag, prompt, correct, people[0] if people else None)
    of_prompt = dict(zip(zip(tag, prompt, strict=True), together, strict=True))
    drawn = drawings(settings, sample_of(by_prompt(tag, prompt, correct), of_prompt))

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
    """Raise `InputError` if two rows are about the same file."""
    seen = Counter(record.values["filename"] for record in table.records if "filename" in record.values)
    if repeated := [name for name, count in seen.items() if count > 1]:
        raise InputError(f"{table.place}, column filename: {repeated[0]} has {seen[repeated[0]]} rows")


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
