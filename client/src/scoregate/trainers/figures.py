"""
Figures of scored pictures, for the log of a training run.

* `scoregate/mean`, `scoregate/METRIC/mean`: of the rewards, and of each part.
* `scoregate/spread`, `scoregate/METRIC/spread`: the mean standard deviation within the group of a prompt.
* `scoregate/constant`: the share of groups of equal rewards, which have no gradient.
* `scoregate/masked`: the share of pictures without a score.
* `scoregate/left_out`: the share of rewards without a metric that is not `required`.
* `scoregate/warnings`: the number of warnings of the service.
* `scoregate/cached`: the share of scores from the service's cache, but for win rates.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping, Sequence
from itertools import chain
from statistics import fmean, pstdev
from typing import Any

from scoregate.trainers.outcomes import Scored, ScoredOrError

PREFIX = "scoregate/"


def statistics(outcomes: Sequence[ScoredOrError], groups: Sequence[Hashable]) -> dict[str, float]:
    """
    Return figures of *outcomes*, each named `scoregate/…`.

    Args:
        groups: the group of each outcome, such as its prompt.

    Returns:
        The figures that the module lists; what no score or no group of two has is not there.
    """
    placed = [(group, one) for group, one in zip(groups, outcomes, strict=True) if isinstance(one, Scored)]
    figures: dict[str, float] = {}
    if outcomes:
        figures["masked"] = 1 - len(placed) / len(outcomes)
        figures["warnings"] = float(sum(one.warned for _, one in placed))
    if placed:
        if cached := [one.cached for _, one in placed if not one.of_group]:
            figures["cached"] = fmean(cached)
        figures["left_out"] = fmean(bool(one.left_out) for _, one in placed)
        rewards = [(group, float(one)) for group, one in placed]
        figures |= spread_of(rewards)
        if spreads := deviations(rewards):
            figures["constant"] = fmean(spread == 0 for spread in spreads)
        for metric in dict.fromkeys(chain.from_iterable(one.parts for _, one in placed)):
            part = spread_of([(group, one.parts[metric]) for group, one in placed if metric in one.parts])
            figures |= {f"{metric}/{name}": value for name, value in part.items()}
    return {PREFIX + name: value for name, value in figures.items()}


def spread_of(values: Sequence[tuple[Hashable, float]]) -> dict[str, float]:
    """Return the `mean` of values with their groups, and their mean `spread` in groups of two or more."""
    mean, spreads = fmean(value for _, value in values), deviations(values)
    return {"mean": mean, "spread": fmean(spreads)} if spreads else {"mean": mean}


def deviations(values: Sequence[tuple[Hashable, float]]) -> list[float]:
    """Return the standard deviation of each group of two or more values."""
    groups: dict[Hashable, list[float]] = {}
    for group, value in values:
        groups.setdefault(group, []).append(value)
    return [pstdev(group) for group in groups.values() if len(group) > 1]


def log(figures: Mapping[str, float], step: int, to: Any) -> None:
    """
    Pass *figures* of a step to a log.

    Args:
        to: a W&B run, the module `wandb` or an `Accelerator` (all have `log`), TensorBoard's `SummaryWriter`,
            or a `logging.Logger`, which gets one line.
    """
    if isinstance(to, logging.Logger):
        to.info("step %d: %s", step, ", ".join(f"{name} {value:.4g}" for name, value in figures.items()))
    elif hasattr(to, "add_scalar"):
        for name, value in figures.items():
            to.add_scalar(name, value, step)
    else:
        to.log(dict(figures), step=step)
