"""Binary accuracy: does the metric prefer the picture that people prefer?"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from scoregate.evaluation.arrays import Codes, Floats, Names, coded, exact, varied
from scoregate.evaluation.errors import BadColumn
from scoregate.evaluation.ties import Average, counts


@dataclass(frozen=True)
class Preference:
    """
    Over pairs of pictures of the same group between which people differ.

    Attributes:
        average: `pairs` if the accuracies are of all pairs, or `groups` if they are means over groups.
        accuracy: the share that the metric orders as people do; equal scores are wrong.
        accuracy_ties_half: the same with half a point for equal scores.
        ties_human: pairs that people do not prefer either of; they are in no accuracy.
        single: groups with one picture.
    """

    average: Average
    accuracy: float
    accuracy_ties_half: float
    pairs: int
    correct: int
    wrong: int
    ties_metric: int
    ties_human: int
    groups: int
    single: int


def preference(metric: Any, human: Any, group: Names, *, average: Average = "pairs") -> Preference:
    """
    Return the accuracy over pairs of pictures.

    Args:
        human: any number that is larger for the better picture, such as 1 and 0.
        group: the pictures to compare with each other, for example those of one prompt.
        average: over the pairs of all groups, or over the groups with such a pair.

    Raises:
        BadColumn: a column is constant, or no group has two pictures that people rated differently.
    """
    (metric, _), (human, _) = exact(varied(metric, "metric")), exact(varied(human, "human"))
    names, groups = coded(group)
    apart = preferred(human, groups)
    if not apart.any():
        raise BadColumn("group", "no group has two pictures that people rated differently")
    of_group = np.ones(len(names)) if average == "pairs" else 1 / np.where(apart, apart, np.inf)
    order = np.lexsort((metric, groups))
    rows = metric[order], human[order], groups[order], of_group[groups][order]
    number, weight = counts(rows, 0.0)
    right, wrong, human_only, tied, both = map(int, number)
    total = weight[[0, 1, 3]].sum()
    return Preference(
        average,
        float(weight[0] / total),
        float((weight[0] + weight[3] / 2) / total),
        right + wrong + tied,
        right,
        wrong,
        tied,
        human_only + both,
        len(names),
        int((np.bincount(groups) == 1).sum()),
    )


def preferred(human: Floats, groups: Codes) -> Floats:
    """Return the number of pairs of each group that people rated differently."""
    sizes = np.bincount(groups)
    cells, equal = np.unique(np.stack([groups, human]), axis=1, return_counts=True)
    tied = np.bincount(cells[0].astype(np.intp), equal * (equal - 1) / 2)
    found: Floats = sizes * (sizes - 1) / 2 - tied
    return found
