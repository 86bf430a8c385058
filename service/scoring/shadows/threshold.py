"""The threshold of a new model that keeps the pass rate of the old one."""

from dataclasses import dataclass

import numpy as np

from service.scoring.shadows.pairs import Floats

MIN_TAIL = 10  # pairs on either side of a threshold; with fewer the rate is a guess


@dataclass(frozen=True, slots=True)
class Threshold:
    """
    A threshold of the served model, and the shadow's in its place.

    Attributes:
        served: the served model's; a score passes if it is as good or better.
        shadow: the shadow's; None if the pairs cannot show it.
        served_rate, shadow_rate: the shares of the pairs that pass.
        caution: a limit of this result; empty if there is none.
    """

    served: float
    shadow: float | None
    served_rate: float
    shadow_rate: float | None
    caution: str = ""


def kept_rate(
    served: Floats, shadow: Floats, threshold: float, *, lower_is_better: bool = False
) -> Threshold:
    """
    Return the shadow's threshold that as many scores pass as pass *threshold* at the served model.

    It is the worst of the best scores of the shadow, as many as pass now.  Equal scores pass together, so
    the rate may not be reachable; then the nearest one is taken, and `caution` has the reason.
    """
    sign = -1.0 if lower_is_better else 1.0
    old, new, total = sign * served, np.sort(sign * shadow), len(served)
    passing = int(np.count_nonzero(old >= sign * threshold))
    rate = passing / total
    if passing in (0, total):
        who = "all" if passing else "none"
        return Threshold(threshold, None, rate, None, f"{who} of the served scores pass, so any limit fits")
    # Each distinct score is a possible threshold, which it passes itself together with all better ones.
    distinct, first = np.unique(new, return_index=True)
    counts = total - first
    nearest = int(np.argmin(np.abs(counts - passing)))
    cautions = []
    if counts[nearest] != passing:
        cautions.append("equal scores of the shadow pass together, so the rate is not kept exactly")
    if min(passing, total - passing) < MIN_TAIL:
        cautions.append(f"fewer than {MIN_TAIL} pairs lie beyond it")
    value = float(sign * distinct[nearest])
    return Threshold(threshold, value, rate, float(counts[nearest] / total), "; ".join(cautions))
