"""Groups of pictures of one prompt: win rates as rewards, and the advantages that trainers compute."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from itertools import chain
from math import fsum, isfinite
from numbers import Real
from statistics import fmean, pstdev, stdev
from typing import Any, Literal
from uuid import uuid4

from scoregate.aio import AsyncClient
from scoregate.errors import InvalidError, ScoregateError
from scoregate.items import Item
from scoregate.results import Result
from scoregate.trainers.outcomes import WeightedSum, weights_of

Gather = Callable[[list[Any]], list[Any]]
"""Returns the entries of all ranks in one list, given those of this rank: `gather_object` of accelerate."""

IMAGE_PLACES = re.compile(r"/prompt$|/images/\d")  # places in a request of `POST /compare`
ALONE_REASON = (
    "a picture alone in its group cannot be compared; a group is the pictures of one prompt in one call"
)


def of_all_ranks(
    items: Sequence[Item | ScoregateError], sums: Sequence[WeightedSum], gather: Gather | None
) -> tuple[list[Item | ScoregateError], list[WeightedSum], list[int]]:
    """
    Return the items and sums of all ranks, and the indices of this rank's own, in order.

    Only the other items of the own groups are kept.  All ranks have them in the same order, so what two ranks
    compare is computed once by the service.
    """
    if gather is None:
        return [*items], [*sums], [*range(len(items))]
    mark = uuid4().hex
    every = gather([(mark, item, one) for item, one in zip(items, sums, strict=True)])
    own = {key_of(item, one) for item, one in zip(items, sums, strict=True)} - {None}
    kept = [each for each in every if each[0] == mark or key_of(each[1], each[2]) in own]
    places = [place for place, (owner, *_) in enumerate(kept) if owner == mark]
    return [item for _, item, _ in kept], [one for _, _, one in kept], places


def key_of(item: Item | ScoregateError, wanted: WeightedSum) -> Hashable:
    """Return the group of an item: its prompt, and the weights of its metrics; an error has none."""
    return None if isinstance(item, ScoregateError) else (item.prompt, *sorted(wanted.weights.items()))


def groups_of(
    left: Sequence[int], items: Sequence[Item | ScoregateError], sums: Sequence[WeightedSum]
) -> list[list[int]]:
    """Return the indices of each group that has one of *left*."""
    groups: dict[Hashable, list[int]] = {}
    for index, (item, wanted) in enumerate(zip(items, sums, strict=True)):
        if isinstance(item, Item):
            groups.setdefault(key_of(item, wanted), []).append(index)
    return [group for group in groups.values() if not set(group).isdisjoint(left)]


async def win_rates(
    client: AsyncClient,
    items: Sequence[Item],
    metrics: Sequence[str],
    options: Mapping[str, Mapping[str, Any]],
    **how: Any,
) -> tuple[list[Result], list[Any]]:
    """
    Return a result for each of *items*, whose scores are its win rates by metric, and the warnings.

    Args:
        items: of one prompt.
        how: further arguments of `AsyncClient.compare`.
    """
    if len(items) < 2:
        return [Result.failed(0, None, metrics, InvalidError(ALONE_REASON)) for _ in items], []
    rates: list[dict[str, float]] = [{} for _ in items]
    errors: list[dict[str, ScoregateError]] = [{} for _ in items]
    comparisons = []
    for metric in metrics:
        own = {metric: options[metric]} if options.get(metric) else None
        try:
            comparison = await client.compare(
                items[0].prompt,
                [item.image for item in items],
                metric=metric,
                options=own,
                **how,
            )
        except ScoregateError as error:
            for failed in errors:
                failed[metric] = of_the_images(error)
            continue
        comparisons.append(comparison)
        for index, rate in enumerate(comparison.win_rates):
            if rate is not None:
                rates[index][metric] = rate
            else:
                errors[index][metric] = comparison.error(index) or ScoregateError("the picture has no pair")
    request_id = comparisons[-1].request_id if comparisons else ""
    notices = [*chain.from_iterable(comparison.warnings for comparison in comparisons)]
    results = []
    for index in range(len(items)):
        about = tuple(notice.of_item() for notice in notices if notice.about(index))
        results.append(Result(index, None, rates[index], errors[index], {}, {}, request_id, warnings=about))
    return results, notices


def of_the_images(error: ScoregateError) -> ScoregateError:
    """Return an error that names only the prompt or pictures of a request as one of its pictures."""
    if error.errors and all(IMAGE_PLACES.match(each["pointer"]) for each in error.errors):
        error = copy(error)
        error.status = 0
    return error


Trainer = Literal["trl", "flow_factory", "pref_grpo"]
SCALES: Mapping[Trainer, Callable[[Sequence[float]], float]] = {
    "trl": lambda values: stdev(values) + 1e-4,
    "flow_factory": lambda values: max(pstdev(values), 1e-6),
    "pref_grpo": lambda values: stdev(values) + 1e-8,
}


def advantages(
    parts: Mapping[str, Sequence[float]],
    groups: Sequence[Hashable],
    trainer: Trainer,
    weights: Mapping[str, float] | None = None,
    *,
    gdpo: bool = False,
    global_std: bool | None = None,
) -> list[float]:
    """
    Return the advantage of each picture as a trainer computes it from the rewards of all ranks.

    TRL and Flow-Factory normalise the weighted sum within each group, and Pref-GRPO each part before the sum.
    With GDPO all normalise each part within its group, and their weighted sum over all pictures.

    Args:
        parts: the rewards by metric, as `Rewards.parts`, without weights.
        groups: the group of each picture, two at least in each.
        weights: by metric; 1 by default.
        gdpo: Flow-Factory's `advantage_aggregation="gdpo"`, which is its default, TRL's
            `multi_objective_aggregation="normalize_then_sum"`, and Pref-GRPO's GDPO.
        global_std: divide the weighted sum by the standard deviation of all pictures and not by each group's:
            Flow-Factory's setting of this name, with its default True, and TRL's `scale_rewards="batch"`.
            False with GDPO: the sum is not normalised, as by newer versions of Flow-Factory; older ones do.

    Raises:
        ValueError: a group has one picture, a part has no finite number for some picture, *weights* are not a
            finite number for each part, or the trainer has no such *global_std*.
    """
    if global_std is not None and (trainer == "pref_grpo" or (gdpo and trainer == "trl")):
        raise ValueError("global_std is a setting of flow_factory, and of trl without gdpo")
    overall = trainer == "flow_factory" if global_std is None else global_std
    places, scale, factors = places_of(parts, groups), SCALES[trainer], weights_of([*parts], weights)

    def total(of: Mapping[str, Sequence[float]]) -> list[float]:
        return [fsum(factors[name] * of[name][index] for name in of) for index in range(len(groups))]

    if trainer != "pref_grpo" and not gdpo:
        summed = total(parts)
        return normalised(summed, places, scale, scale(summed) if overall else None)
    summed = total({name: normalised(values, places, scale) for name, values in parts.items()})
    return normalised(summed, [range(len(groups))], scale) if gdpo and global_std is not False else summed


def places_of(parts: Mapping[str, Sequence[float]], groups: Sequence[Hashable]) -> list[list[int]]:
    """Return the indices of each group.  Raises `ValueError`."""
    places: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        places.setdefault(group, []).append(index)
    if alone := [group for group, own in places.items() if len(own) < 2]:
        raise ValueError(f"a group of one picture has no advantage: {alone[0]!r}")
    for name, values in parts.items():
        if len(values) != len(groups):
            raise ValueError(f"{name} has {len(values)} rewards for {len(groups)} pictures")
        for index, value in enumerate(values):
            if not isinstance(value, Real) or not isfinite(value):
                raise ValueError(f"picture {index} has no finite number as {name}, but {value!r}")
    return [*places.values()]


def normalised(
    values: Sequence[float],
    places: Iterable[Sequence[int]],
    scale: Callable[[Sequence[float]], float],
    size: float | None = None,
) -> list[float]:
    """Return each value minus the mean of its group, divided by *size*; by default the group's *scale*."""
    found = [0.0] * len(values)
    for group in places:
        own = [values[index] for index in group]
        mean, divisor = fmean(own), scale(own) if size is None else size
        for index in group:
            found[index] = (values[index] - mean) / divisor
    return found
