"""
Gecko's reliable prompts: those that raters agree about, whichever the generator and the template.

Wiles et al. 2024 (arXiv 2404.16820), section 4.1.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from scoregate.evaluation.arrays import Codes, Floats, Names, coded, varied
from scoregate.evaluation.errors import BadColumn
from scoregate.evaluation.scale import Scale, inside

THRESHOLD = 0.5
NOISE = 1e-9  # of a variance: half of the largest one is not below half of it


@dataclass(frozen=True)
class Part:
    """
    One generator under one template.

    Attributes:
        prompts: with a disagreement, that is with two ratings of one thing.
        max_disagreement: of all prompts; a disagreement is the variance of ratings.
        reliable: prompts whose disagreement is below the threshold's share of that.
    """

    model: str
    template: str
    prompts: int
    max_disagreement: float
    reliable: int


@dataclass(frozen=True)
class Reliable:
    """
    Attributes:
        prompts: all; *reliable* are those that every part keeps, and *ids* their names.
        missing: prompts without two ratings of one thing in some part; they are not reliable.
    """

    prompts: int
    reliable: int
    threshold: float
    missing: int
    parts: list[Part]
    ids: list[str]
    out_of_scale: int


def reliable(
    prompt: Names,
    model: Names,
    rating: Any,
    *,
    template: Names | None = None,
    unit: Names | None = None,
    scale: Scale | None = None,
    threshold: float = THRESHOLD,
) -> Reliable:
    """
    Return the prompts with reliable ratings.

    Args:
        template: the wording of the question to raters; None for one template.
        unit: the rated part of a prompt, such as a word or a question; variances are averaged over the
            units.  None if the whole picture was rated.

    Raises:
        BadColumn: all ratings are the same or outside the scale, or nothing was rated twice.
    """
    values = varied(rating, "rating")
    kept = inside(values, scale, "rating")
    prompts, rows = coded(prompt)
    wordings = [""] * len(values) if template is None else template
    pairs = list(zip(model, wordings, strict=True))
    number = {pair: place for place, pair in enumerate(sorted(set(pairs)))}
    places = np.array([number[pair] for pair in pairs])
    things = coded([""] * len(values) if unit is None else unit)[1]
    held = np.ones(len(prompts), bool)
    measured = held.copy()
    found = []
    for (name, how), place in number.items():
        chosen = kept & (places == place)
        disagreement = disagreements(rows[chosen], things[chosen], values[chosen], len(prompts))
        there = ~np.isnan(disagreement)
        if not there.any():
            raise BadColumn("rating", f"{name} {how}".strip() + ": nothing has two ratings")
        largest = float(np.nanmax(disagreement))
        below = there & (disagreement < threshold * largest * (1 - NOISE)) if largest else there
        held &= below
        measured &= there
        found.append(Part(name, how, int(there.sum()), largest, int(below.sum())))
    ids = [name for name, keep in zip(prompts, held, strict=True) if keep]
    return Reliable(len(prompts), len(ids), threshold, int((~measured).sum()), found, ids, int((~kept).sum()))


def disagreements(rows: Codes, things: Codes, values: Floats, prompts: int) -> Floats:
    """Return each prompt's variance of ratings, averaged over its units; NaN without two ratings."""
    cells, places = np.unique(np.stack([rows, things]), axis=1, return_inverse=True)
    places = places.reshape(-1)
    count = np.bincount(places)
    mean = np.bincount(places, values) / count
    variance = np.bincount(places, (values - mean[places]) ** 2) / count
    of_prompt = cells[0][count > 1]
    sums = np.bincount(of_prompt, variance[count > 1], minlength=prompts)
    number = np.bincount(of_prompt, minlength=prompts)
    return np.where(number > 0, sums / np.maximum(number, 1), np.nan)
