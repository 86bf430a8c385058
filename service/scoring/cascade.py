"""Pictures ranked by one metric, or by a cheap one first and then the best of them by another."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from service.core.errors import DeadlineExceeded, LaneFull
from service.observability.notes import Code, Note
from service.scoring.engine import Engine
from service.scoring.items import UnopenedItem
from service.scoring.ranking import Cascade, RankedItem, Rule, best, is_late, ranking, refuse
from service.scoring.report import ItemReport, Report
from service.serving.context import Context, free


@dataclass(frozen=True, slots=True)
class Ranked:
    """The places, best first, and what is behind them: a report with an entry for each item, in order."""

    places: Sequence[RankedItem]
    report: Report


async def ranked(engine: Engine, items: Sequence[UnopenedItem], rule: Rule, context: Context) -> Ranked:
    """
    The ranking of *items*, which are pictures for one prompt.

    Raises:
        UnknownMetric, LaneFull, Overloaded, TooLarge, QuotaExceeded: as `Engine.score`; for both metrics
            before any work is done.
        ImageFailed, DeadlineExceeded, NotReady: as `refuse`.
    """
    if rule.cascade is None:
        report = await engine.score(items, [rule.metric], context)
        refuse(report, rule)
    else:
        report = await both(engine, items, rule, rule.cascade, context)
    return Ranked(ranking([item.outcomes for item in report.items], rule), report)


async def both(
    engine: Engine, items: Sequence[UnopenedItem], rule: Rule, cascade: Cascade, context: Context
) -> Report:
    """The scores of all by the cascade's metric, and of the best by the rule's.  Raises as `ranked`."""
    admit(engine, items, rule, cascade, context)
    context = replace(context, charge=free)
    cheap = await engine.score(items, [cascade.metric], context)
    refuse(cheap, rule)
    chosen = best([item.outcomes for item in cheap.items], cascade.metric, rule)[: cascade.keep]
    dear = await by_the_metric(engine, [items[index] for index in chosen], rule, context)
    refuse(dear, rule)
    told = late(dear, rule, cascade)
    for note in told:
        context.instruments.warnings.labels(note.code).inc()
    outcomes = [dict(item.outcomes) for item in cheap.items]
    for index, item in zip(chosen, dear.items, strict=True):
        outcomes[index] |= item.outcomes
    return Report(
        [ItemReport(item, each) for item, each in zip(items, outcomes, strict=True)],
        {**cheap.models, **dear.models},
        list(dict.fromkeys([*cheap.notes, *dear.notes, *told])),
    )


def admit(
    engine: Engine, items: Sequence[UnopenedItem], rule: Rule, cascade: Cascade, context: Context
) -> None:
    """Raise what `ranked` raises before any work; else charge for both stages."""
    kept = items[: cascade.keep]  # whichever they will be, they ask as much
    engine.admit(items, [cascade.metric], context)
    try:
        engine.admit(kept, [rule.metric], context)
    except LaneFull:
        if rule.on_deadline == "fail":
            raise
    context.charge(len(items) + len(kept))


async def by_the_metric(
    engine: Engine, items: Sequence[UnopenedItem], rule: Rule, context: Context
) -> Report:
    """The scores of the second stage; where it would be late as a whole and may be, all of them are."""
    try:
        return await engine.score(items, [rule.metric], context)
    except LaneFull:
        if rule.on_deadline == "fail":
            raise
    error = DeadlineExceeded(stage="queue")
    report = Report([ItemReport(item, {rule.metric: error}) for item in items])
    report.count(context.instruments)
    return report


def late(dear: Report, rule: Rule, cascade: Cascade) -> list[Note]:
    """What the caller should know where the cascade's metric stands in for the other."""
    count = sum(is_late(rule.metric, item.outcomes[rule.metric], rule) for item in dear.items)
    if not count:
        return []
    text = f"the time ran out: {count} of {len(dear.items)} pictures are ordered by {cascade.metric} alone"
    return [Note(Code.DECIDED_BY_CASCADE, text)]
