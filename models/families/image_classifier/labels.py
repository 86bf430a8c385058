"""The labels of a classifier, and the score of an image from their probabilities."""

from collections.abc import Sequence

import numpy as np

from models.core.contract import CheckpointError
from models.core.messages import listed
from models.core.outcomes import Reward

COST_SIDE = 16  # side in pixels of the squares that the cost counts


def cost_of(width: int, height: int) -> int:
    """Return the cost of an image of that size in tokens: its squares, at least one."""
    return max(1, height // COST_SIDE * (width // COST_SIDE))


class Labels:
    """
    The labels of a classifier, some of them unsafe.

    Args:
        place: of the classifier, for errors.
        labels: of its outputs, in order.  Two may have one name.
        unsafe: names of unsafe ones.

    Raises:
        CheckpointError: there is no label of such a name, or no other one.
    """

    def __init__(self, place: object, labels: Sequence[str], unsafe: Sequence[str]) -> None:
        if unknown := [repr(name) for name in unsafe if name not in labels]:
            raise CheckpointError(
                f"{place}: unsafe: there is no label {', '.join(unknown)}; there are {listed(labels, 40)}"
            )
        if not set(labels) - set(unsafe):
            raise CheckpointError(f"{place}: unsafe: names every label, so that no picture would be safe")
        names = dict.fromkeys(unsafe)  # a name that is given twice counts once
        self._places = [[at for at, label in enumerate(labels) if label == name] for name in names]

    def result(self, probabilities: np.ndarray) -> Reward:
        """
        Return one minus the probability of all unsafe labels, and then that of each, in the order of names.

        Args:
            probabilities: (labels,), float64.
        """
        unsafe = [float(probabilities[places].sum()) for places in self._places]
        return Reward((1 - min(1.0, sum(unsafe)), *unsafe))
