"""Binary accuracy: does the metric prefer the picture that people prefer?"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from scoregate.evaluation.arrays import Names, coded, exact, varied
from scoregate.evaluation.errors import BadColumn
from scoregate.evaluation.ties import counts


@dataclass(frozen=True)
class Preference:
    """
    Over pairs of pictures of the same group between which people differ.

    Attributes:
        accuracy: the share that the metric orders as people do; equal scores are wrong.
        accuracy_ties_half: the same with half a point for equal scores.
        ties_human: pairs that people do not prefer either of; they are in no accuracy.
        single: groups with one picture.
    """

    accuracy: float
    accuracy_ties_half: float
    pairs: int
    correct: int
    wrong: int
    ties_metric: int
    ties_human: int
    groups: int
    single: int


def preference(metric: Any, human: Any, group: Names) -> Preference:
    """
    Return the accuracy over pairs of pictures.

    Args:
        human: any number that is larger for the better picture, such as 1 and 0.
        group: the pictures to compare with each other, for example those of one prompt.

    Raises:
        BadColumn: a column is constant, or no group has two pictures that people rated differently.
    """
    (metric, _), (human, _) = exact(varied(metric, "metric")), exact(varied(human, "human"))
    names, groups = coded(group)
    order = np.lexsort((metric, groups))
    right, wrong, human_only, tied, both = map(int, counts((metric[order], human[order], groups[order]), 0.0))
    pairs = right + wrong + tied
    if not pairs:
        raise BadColumn("group", "no group has two pictures that people rated differently")
    return Preference(
        right / pairs,
        (right + tied / 2) / pairs,
        pairs,
        right,
        wrong,
        tied,
        human_only + both,
        len(names),
        int((np.bincount(groups) == 1).sum()),
    )
