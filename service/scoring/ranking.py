"""Ranking of images by one metric, or by a cheap one and then the best of them by another."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from service.core.errors import REFUSALS, DeadlineExceeded, Fault, ImageFailed, LaneFull, ScoregateError
from service.metrics.common.contract import Score
from service.observability.notes import Code, Note
from service.scoring.engine import Engine, repeated
from service.scoring.plan import UnopenedItem
from service.scoring.report import ItemReport, MetricResult, Report, most_telling
from service.serving.context import Context, free
from service.serving.handle import used

Results = Mapping[str, MetricResult]
"""The results of one image, by metric; without metrics that it was not scored by."""


@dataclass(frozen=True, slots=True)
class Cascade:
    """A cheap metric that orders all images, and how many of the best are kept."""

    metric: str
    keep: int


@dataclass(frozen=True, slots=True)
class Rule:
    """
    Parameters of a ranking.

    Attributes:
        top_k: the most images that may be accepted; None for all.
        threshold: the worst score by *metric* that is accepted; None for any.
        on_error: if an image fails, raise an error, accept it, or reject it.
        on_deadline: if *metric* is late for an image, raise an error, or rank it behind the others by the
            cascade's metric.
        lower: the metrics whose lower scores are better.
    """

    metric: str
    cascade: Cascade | None = None
    top_k: int | None = None
    threshold: float | None = None
    on_error: Literal["raise", "pass", "block"] = "raise"
    on_deadline: Literal["fail", "cheap"] = "fail"
    lower: Collection[str] = ()

    def merit(self, metric: str, score: float) -> float:
        """Return a number that is larger for better scores."""
        return -score if metric in self.lower else score


@dataclass(frozen=True, slots=True)
class RankedItem:
    """
    One image of a ranking.

    Attributes:
        index: in the request.
        decided_by: the metric of its score; None if it failed.
        failed: the metric that failed and its error; None if it has a score.
    """

    index: int
    accepted: bool
    decided_by: str | None = None
    failed: tuple[str, ScoregateError] | None = None


@dataclass(frozen=True, slots=True)
class Ranked:
    """The ranked items, best first, with a report that has an entry for each item, in request order."""

    places: Sequence[RankedItem]
    report: Report


async def ranked(engine: Engine, items: Sequence[UnopenedItem], rule: Rule, context: Context) -> Ranked:
    """
    Rank *items*, which are images for one prompt.

    Raises:
        UnknownMetric, LaneFull, Overloaded, TooLarge, QuotaExceeded, ModelChanged: see `Engine.score`; for
            both metrics before any work is done.
        ImageFailed, DeadlineExceeded, NotReady: see `refuse`.
    """
    cascade = rule.cascade
    if cascade is None:
        report = await engine.score(items, [rule.metric], context)
        refuse(report, rule)
    else:
        with used(engine.catalog.handles([rule.metric]).values(), context):  # both stages need it
            report = await repeated(lambda context: both(engine, items, rule, cascade, context), context)
    return Ranked(ranking([item.results for item in report.items], rule), report)


async def both(
    engine: Engine, items: Sequence[UnopenedItem], rule: Rule, cascade: Cascade, context: Context
) -> Report:
    """
    Score all items by the cascade's metric, and the best by the rule's.  Raises as `ranked`.

    Each stage is admitted by `Engine.score`; the second is also checked before the first begins.
    """
    kept = items[: cascade.keep]  # whichever are kept, they are as much work
    try:
        engine.admit(kept, [rule.metric], context)
    except LaneFull:
        if rule.on_deadline == "fail":
            raise
    both_stages = context.charging(lambda pairs: context.account.charge(pairs + len(kept)))
    cheap = await engine.score_once(items, [cascade.metric], both_stages)
    refuse(cheap, rule)
    chosen = best([item.results for item in cheap.items], cascade.metric, rule)[: cascade.keep]
    dear = await second_stage(engine, [items[index] for index in chosen], rule, context)
    refuse(dear, rule)
    warnings = late(dear, rule, cascade)
    for note in warnings:
        context.instruments.warnings.labels(note.code).inc()
    joined = list(cheap.items)
    for index, item in zip(chosen, dear.items, strict=True):
        joined[index] = joined[index].joined(item)
    return Report(
        joined,
        {**cheap.infos, **dear.infos},
        list(dict.fromkeys([*cheap.notes, *dear.notes, *warnings])),
    )


async def second_stage(engine: Engine, items: Sequence[UnopenedItem], rule: Rule, context: Context) -> Report:
    """Score items by the rule's metric; if that is refused and may be late, every item is late."""
    try:
        return await engine.score_once(items, [rule.metric], context.charging(free))
    except LaneFull as refused:
        if rule.on_deadline == "fail":
            raise
        context.instruments.count_rejection(refused)
    error = DeadlineExceeded(stage="queue")
    report = Report([ItemReport(item, {rule.metric: error}) for item in items])
    report.count(context.instruments)
    return report


def late(dear: Report, rule: Rule, cascade: Cascade) -> list[Note]:
    """Return a warning if the cascade's metric replaces late scores of the other."""
    count = sum(is_late(rule.metric, item.results[rule.metric], rule) for item in dear.items)
    if not count:
        return []
    text = f"the time ran out: {count} of {len(dear.items)} images are ordered by {cascade.metric} alone"
    return [Note(Code.DECIDED_BY_CASCADE, text)]


def ranking(results: Sequence[Results], rule: Rule) -> list[RankedItem]:
    """
    Rank images, best first.

    Images scored by the metric come first.  Late ones and those that were not kept follow, ordered by the
    cascade's metric.  Failed images are last, by index.
    """
    failed = {index: fault for index, each in enumerate(results) if (fault := fault_of(each, rule))}
    scored = best(results, rule.metric, rule, without=failed)
    others = best(results, rule.cascade.metric, rule, without={*failed, *scored}) if rule.cascade else []
    items = []
    for position, index in enumerate([*scored, *others]):
        metric = rule.metric if index in scored or not rule.cascade else rule.cascade.metric
        items.append(RankedItem(index, accepted(position, results[index].get(rule.metric), rule), metric))
    return items + [
        RankedItem(index, rule.on_error == "pass", failed=fault) for index, fault in failed.items()
    ]


def best(results: Sequence[Results], metric: str, rule: Rule, without: Collection[int] = ()) -> list[int]:
    """Return the images scored by *metric*, best first; equal scores stay in request order."""
    merits = {
        index: rule.merit(metric, result.value)
        for index, each in enumerate(results)
        if index not in without and isinstance(result := each.get(metric), Score)
    }
    return sorted(merits, key=lambda index: -merits[index])  # a stable sort


def accepted(position: int, result: MetricResult | None, rule: Rule) -> bool:
    """Return True if an image is within `top_k` and reaches the threshold; one without *result* does not."""
    if result is None or (rule.top_k is not None and position >= rule.top_k):
        return False
    if rule.threshold is None:
        return True
    least = rule.merit(rule.metric, rule.threshold)
    return isinstance(result, Score) and rule.merit(rule.metric, result.value) >= least


def fault_of(results: Results, rule: Rule) -> tuple[str, ScoregateError] | None:
    """Return the metric that failed for an image and its error, unless it is late and may be."""
    for metric, result in results.items():
        if isinstance(result, ScoregateError) and not is_late(metric, result, rule):
            return metric, result
    return None


def is_late(metric: str, result: MetricResult | None, rule: Rule) -> bool:
    """Return True if *metric* was late and the cascade's metric may replace it."""
    allowed = rule.on_deadline == "cheap" and metric == rule.metric
    return allowed and isinstance(result, DeadlineExceeded)


def refuse(report: Report, rule: Rule) -> None:
    """
    Raise an error if one stage of a ranking cannot be answered.

    Raises:
        ImageFailed: an image failed, and `on_error` is "raise"; every such image is named.
        DeadlineExceeded: an image is late, and no other score may replace it.
        LaneFull, Overloaded, NotReady: images were refused, all of them or with `on_error` "raise".
    """
    faults = [(item.item.place, fault[1]) for item in report.items if (fault := fault_of(item.results, rule))]
    late = [(place, error) for place, error in faults if isinstance(error, DeadlineExceeded)]
    refused = [error for _, error in faults if isinstance(error, REFUSALS)]
    failed = [each for each in faults if not isinstance(each[1], (DeadlineExceeded, *REFUSALS))]
    if failed and rule.on_error == "raise":
        (place, first), *more = failed
        detail = f"{place}: {first.detail}" + (f" (and {len(more)} more)" if more else "")
        raise ImageFailed(detail, faults=named(failed))
    if late:
        raise DeadlineExceeded(stage=late[0][1].stage, faults=named(late))
    if refused and (rule.on_error == "raise" or len(refused) == len(report.items)):
        raise most_telling(refused)


def named(failed: Sequence[tuple[str, ScoregateError]]) -> list[Fault]:
    """Return errors of images as faults of the request."""
    return [Fault(place, error.code, error.detail) for place, error in failed]
