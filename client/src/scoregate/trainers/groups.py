"""Groups of pictures of one prompt: win rates as rewards, and the advantages that trainers compute."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy
from itertools import chain
from math import fsum
from statistics import fmean, pstdev, stdev
from typing import Any, Literal
from uuid import uuid4

from scoregate.aio import AsyncClient
from scoregate.errors import Invalid, ScoregateError
from scoregate.items import Item
from scoregate.results import Result
from scoregate.trainers.outcomes import WeightedSum

Gather = Callable[[list[Any]], list[Any]]
"""Returns the entries of all ranks in one list, given those of this rank: `gather_object` of accelerate."""

OF_PICTURES = re.compile(r"/prompt$|/images/\d")  # places in a request of `POST /compare`
ALONE = "a picture alone in its group cannot be compared; a group is the pictures of one prompt in one call"


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
        return [Result.failed(0, None, metrics, Invalid(ALONE)) for _ in items], []
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
                on_error="fail",
                **how,
            )
        except ScoregateError as error:
            for failed in errors:
                failed[metric] = of_the_pictures(error)
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


def of_the_pictures(error: ScoregateError) -> ScoregateError:
    """Return an error that names only the prompt or pictures of a request as one of its pictures."""
    if error.errors and all(OF_PICTURES.match(each["pointer"]) for each in error.errors):
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
) -> list[float]:
    """
    Return the advantage of each picture as a trainer computes it from the rewards of all ranks.

    TRL and Flow-Factory normalise the weighted sum within each group, and Pref-GRPO each part before the sum.
    With GDPO, Flow-Factory and Pref-GRPO normalise each part within its group, and their weighted sum over
    all pictures.

    Args:
        parts: the rewards by metric, as `Rewards.parts`, without weights.
        groups: the group of each picture, two at least in each.
        weights: by metric; 1 by default.

    Raises:
        ValueError: a group has one picture, a part has no number for some picture, or TRL with GDPO.
    """
    if gdpo and trainer == "trl":
        raise ValueError("TRL normalises the sum of rewards; gdpo is for flow_factory and pref_grpo")
    places: dict[Hashable, list[int]] = {}
    for index, group in enumerate(groups):
        places.setdefault(group, []).append(index)
    if any(len(group) < 2 for group in places.values()):
        raise ValueError("a group of one picture has no advantage")
    for name, values in parts.items():
        if len(values) != len(groups) or not all(isinstance(each, (int, float)) for each in values):
            raise ValueError(f"some picture has no {name}")
    scale = SCALES[trainer]

    def normalised(values: Sequence[float], within: Iterable[Sequence[int]]) -> list[float]:
        found = [0.0] * len(values)
        for group in within:
            own = [values[index] for index in group]
            mean, size = fmean(own), scale(own)
            for index in group:
                found[index] = (values[index] - mean) / size
        return found

    def total(of: Mapping[str, Sequence[float]]) -> list[float]:
        factors = {name: 1.0 if weights is None else weights[name] for name in of}
        return [fsum(factors[name] * of[name][index] for name in of) for index in range(len(groups))]

    if trainer != "pref_grpo" and not gdpo:
        return normalised(total(parts), places.values())
    summed = total({name: normalised(values, places.values()) for name, values in parts.items()})
    return normalised(summed, [range(len(groups))]) if gdpo else summed
