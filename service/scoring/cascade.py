"""Ranking of images by one metric, or by a cheap one and then the best of them by another."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.core.errors import DeadlineExceeded, LaneFull
from service.observability.notes import Code, Note
from service.scoring.engine import Engine
from service.scoring.items import UnopenedItem
from service.scoring.ranking import Cascade, RankedItem, Rule, best, is_late, ranking, refuse
from service.scoring.report import ItemReport, Report
from service.serving.context import Context, free
from service.serving.handle import used


@dataclass(frozen=True, slots=True)
class Ranked:
    """The ranked items, best first, with a report that has an entry for each item, in request order."""

    places: Sequence[RankedItem]
    report: Report


async def ranked(engine: Engine, items: Sequence[UnopenedItem], rule: Rule, context: Context) -> Ranked:
    """
    Rank *items*, which are images for one prompt.

    Raises:
        UnknownMetric, LaneFull, Overloaded, TooLarge, QuotaExceeded: see `Engine.score`; for both metrics
            before any work is done.
        ImageFailed, DeadlineExceeded, NotReady: see `refuse`.
        ModelChanged: the stages of a cascade had different models of one name.
    """
    if rule.cascade is None:
        report = await engine.score(items, [rule.metric], context)
        refuse(report, rule)
    else:
        with used(engine.catalog.handles([rule.metric]).values(), context):  # during the first stage too
            report = await both(engine, items, rule, rule.cascade, context)
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
    both_stages = replace(context, charge=lambda pairs: context.charge(pairs + len(kept)))
    cheap = await engine.score(items, [cascade.metric], both_stages)
    refuse(cheap, rule)
    chosen = best([item.results for item in cheap.items], cascade.metric, rule)[: cascade.keep]
    dear = await second_stage(engine, [items[index] for index in chosen], rule, context)
    infos = cheap.infos_with(dear)
    refuse(dear, rule)
    warnings = late(dear, rule, cascade)
    for note in warnings:
        context.instruments.warnings.labels(note.code).inc()
    joined = list(cheap.items)
    for index, item in zip(chosen, dear.items, strict=True):
        joined[index] = joined[index].joined(item)
    return Report(
        joined,
        infos,
        list(dict.fromkeys([*cheap.notes, *dear.notes, *warnings])),
    )


async def second_stage(engine: Engine, items: Sequence[UnopenedItem], rule: Rule, context: Context) -> Report:
    """Score items by the rule's metric; if that is refused and may be late, every item is late."""
    try:
        return await engine.score(items, [rule.metric], replace(context, charge=free))
    except LaneFull:
        if rule.on_deadline == "fail":
            raise
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
