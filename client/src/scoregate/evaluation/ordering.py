"""
Which generator is better, if the difference is significant.

The model ordering of Gecko (Wiles et al. 2024, arXiv 2404.16820, section 4.2): Wilcoxon's signed-rank test
for each pair of generators.
"""

from dataclasses import dataclass, replace
from itertools import combinations
from math import erfc, sqrt
from typing import Any, Literal

import numpy as np

from scoregate.errors import ColumnError
from scoregate.evaluation.arrays import (
    Codes,
    Floats,
    Names,
    Scale,
    average_ranks,
    coded,
    exact,
    floats,
    inside,
)

ORDER_ALPHA = 0.001
EQUAL_SHARE = 1e-12  # differences closer than this share of the largest one are equal

ZeroMethod = Literal["wilcox", "pratt"]
Better = Literal["ranks", "means"]


@dataclass(frozen=True)
class Rule:
    """When two generators differ, and which of them is better."""

    alpha: float
    zero_method: ZeroMethod
    better: Better


@dataclass(frozen=True)
class SignedRank:
    """
    Attributes:
        n: differences other than 0; *zeros* are the others.
        w_plus: sum of the ranks of positive differences; *w_minus* of negative ones.
        z, p: of the normal approximation, two-sided, with ties corrected and without continuity correction.
    """

    n: int
    zeros: int
    w_plus: float
    w_minus: float
    z: float
    p: float


@dataclass(frozen=True)
class OrderedPair:
    """
    The test of two generators, as in `SignedRank`.

    *relation* is `>` if *a* is significantly better, `<` if *b* is, else `=`: the one with the larger sum of
    ranks, or with the larger mean over the items of both, as in Gecko.
    """

    a: str
    b: str
    n: int
    zeros: int
    w_plus: float
    w_minus: float
    z: float
    p: float
    relation: str


@dataclass(frozen=True)
class Ordering:
    """
    Attributes:
        order: generators by mean value, the best first.
        tiers: groups without a significant difference, the best first; None if `=` is not transitive.
        unpaired: items that lack a generator; they count in the pairs that have both.
        ratings: rows; several of a generator and an item were averaged.
        agreement: the share of pairs with people's relation, *human_pairs* and *human_order*.
    """

    pairs: list[OrderedPair]
    order: list[str]
    means: dict[str, float]
    tiers: list[list[str]] | None
    items: int
    unpaired: int
    ratings: int
    out_of_scale: int
    agreement: float | None = None
    human_pairs: list[OrderedPair] | None = None
    human_order: list[str] | None = None


def ordering(
    value: Any,
    model: Names,
    item: Names,
    *,
    scale: Scale | None = None,
    alpha: float = ORDER_ALPHA,
    zero_method: ZeroMethod = "wilcox",
    better: Better = "ranks",
    human: Any = None,
) -> Ordering:
    """
    Compare each pair of generators by their values for the same items.

    Args:
        scale: of the ratings: those of *human* if it is given, else of *value*.
        better: how the better of two significantly different generators is found.
        human: people's ratings of the same rows; *agreement* is the share of pairs with their relation.

    Raises:
        ColumnError: there is one generator, or two of them share no item.
    """
    rule = Rule(alpha, zero_method, better)
    if human is None:
        return ordered(floats(value, "value"), model, item, scale, rule, "value")
    found = ordered(floats(value, "value"), model, item, None, rule, "value")
    people = ordered(floats(human, "human"), model, item, scale, rule, "human")
    if set(people.order) != set(found.order):
        raise ColumnError("human", "a generator has no rating inside the scale")
    same = sum(a.relation == b.relation for a, b in zip(found.pairs, people.pairs, strict=True))
    return replace(
        found,
        out_of_scale=people.out_of_scale,
        agreement=same / len(found.pairs),
        human_pairs=people.pairs,
        human_order=people.order,
    )


def ordered(
    values: Floats,
    model: Names,
    item: Names,
    scale: Scale | None,
    rule: Rule,
    argument: str,
) -> Ordering:
    kept = inside(values, scale, argument)
    models, rows = coded([name for name, keep in zip(model, kept, strict=True) if keep])
    items, columns = coded([name for name, keep in zip(item, kept, strict=True) if keep])
    if len(models) < 2:
        raise ColumnError("model", f"there is one generator, {models[0]}, and an order needs two")
    cells = cells_of(values[kept], rows, columns, (len(models), len(items)))
    if np.nanmin(cells) == np.nanmax(cells):
        raise ColumnError(argument, f"all values are {np.nanmin(cells):g}")
    cells, means = exact_cells(cells), np.nanmean(cells, axis=1)
    pairs = [compared(cells, models, a, b, rule) for a, b in combinations(range(len(models)), 2)]
    order = sorted(range(len(models)), key=lambda place: -means[place])
    return Ordering(
        pairs,
        [models[place] for place in order],
        {models[place]: float(means[place]) for place in order},
        tiers([models[place] for place in order], pairs),
        len(items),
        int(np.isnan(cells).any(axis=0).sum()),
        int(kept.sum()),
        int((~kept).sum()),
    )


def cells_of(values: Floats, rows: Codes, columns: Codes, shape: tuple[int, int]) -> Floats:
    """
    Return a row for each generator and a column for each item: the mean of its values, NaN without any.

    Args:
        rows, columns: the codes of the generator and the item of each value.
        shape: the numbers of generators and items.
    """
    count = np.zeros(shape)
    total = np.zeros_like(count)
    np.add.at(count, (rows, columns), 1)
    np.add.at(total, (rows, columns), values)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def exact_cells(cells: Floats) -> Floats:
    """Return the cells as whole numbers, if they are decimals or means of a few ratings."""
    there = ~np.isnan(cells)
    found = cells.copy()
    found[there], _ = exact(cells[there])
    return found


def compared(cells: Floats, models: list[str], a: int, b: int, rule: Rule) -> OrderedPair:
    both = ~np.isnan(cells[a]) & ~np.isnan(cells[b])
    if not both.any():
        raise ColumnError("item", f"{models[a]} and {models[b]} share no item")
    differences = cells[a][both] - cells[b][both]
    found = signed_rank(differences, rule.zero_method)
    more = found.w_plus - found.w_minus if rule.better == "ranks" else float(differences.sum())
    relation = "=" if found.p >= rule.alpha or not more else ">" if more > 0 else "<"
    return OrderedPair(models[a], models[b], **vars(found), relation=relation)


def signed_rank(differences: Any, zero_method: ZeroMethod = "wilcox") -> SignedRank:
    """
    Return Wilcoxon's signed-rank test; without a difference p is 1.

    Args:
        zero_method: `wilcox` drops differences of 0, `pratt` ranks them and then drops them.
    """
    given = without_noise(differences)
    zeros = int((given == 0).sum())
    ranked = given if zero_method == "pratt" else given[given != 0]
    ranks = average_ranks(np.abs(ranked))
    plus, minus = float(ranks[ranked > 0].sum()), float(ranks[ranked < 0].sum())
    n, left_out = len(ranked), zeros if zero_method == "pratt" else 0
    mean = (n * (n + 1) - left_out * (left_out + 1)) / 4
    _, ties = np.unique(ranks[ranked != 0], return_counts=True)
    variance = (
        n * (n + 1) * (2 * n + 1)
        - left_out * (left_out + 1) * (2 * left_out + 1)
        - float((ties.astype(float) ** 3 - ties).sum()) / 2
    ) / 24
    z = (plus - mean) / sqrt(variance) if variance > 0 else 0.0
    return SignedRank(len(given) - zeros, zeros, plus, minus, z, erfc(abs(z) / sqrt(2)))


def without_noise(differences: Any) -> Floats:
    """Return whole numbers, in units of `EQUAL_SHARE` of the largest difference: equal ones are equal."""
    given = np.asarray(differences, dtype=np.float64)
    largest = np.abs(given).max(initial=0)
    return np.rint(given / (largest * EQUAL_SHARE)) if largest else given


def tiers(order: list[str], pairs: list[OrderedPair]) -> list[list[str]] | None:
    """Group neighbours in *order* without a significant difference; None if pairs conflict."""
    known = {(pair.a, pair.b): pair.relation for pair in pairs}
    known |= {(b, a): {"<": ">", ">": "<", "=": "="}[relation] for (a, b), relation in known.items()}
    found = [[order[0]]]
    for name in order[1:]:
        if known[found[-1][-1], name] == "=":
            found[-1].append(name)
        else:
            found.append([name])
    place = {name: number for number, tier in enumerate(found) for name in tier}
    fits = all(known[a, b] == ("=" if place[a] == place[b] else ">") for a, b in combinations(order, 2))
    return found if fits else None
