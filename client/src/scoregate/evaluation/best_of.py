"""Best of N: how good is the picture that a metric picks among N of the same prompt?"""

from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from scoregate.evaluation.arrays import Floats, Names, coded, floats
from scoregate.evaluation.errors import BadColumn


@dataclass(frozen=True)
class BestOf:
    """Mean ratings of the picks by N, over *groups* with as many pictures as the largest one."""

    groups: int
    means: dict[int, float]


def best_of(metric: Any, human: Any, group: Names) -> BestOf:
    """
    Return the mean rating of the picks for each N, over all choices of N pictures of a group.

    Equal scores are picked equally often.  Groups have the same weight, and smaller ones are left out, so
    that all N are about the same pictures.

    Raises:
        BadColumn: no group has two pictures.
    """
    metric, human = floats(metric, "metric"), floats(human, "human")
    names, codes = coded(group)
    sizes = np.bincount(codes, minlength=len(names))
    most = int(sizes.max())
    if most < 2:
        raise BadColumn("group", "no group has two pictures")
    groups = [codes == code for code in np.flatnonzero(sizes == most)]
    picked = [picks(metric[rows], human[rows]) for rows in groups]
    means = {count: float(value) for count, value in enumerate(np.mean(picked, axis=0), 1)}
    return BestOf(len(groups), means)


def picks(metric: Floats, human: Floats) -> Floats:
    """Return the mean rating of the pick among N of these pictures, for N from 1 to all of them."""
    found = []
    for count in range(1, len(metric) + 1):
        total = 0.0
        for score in np.unique(metric):
            below, upto = int((metric < score).sum()), int((metric <= score).sum())
            share = (comb(upto, count) - comb(below, count)) / comb(len(metric), count)
            total += share * float(human[metric == score].mean())
        found.append(total)
    return np.array(found)
