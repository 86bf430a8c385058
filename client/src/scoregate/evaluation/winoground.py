"""
Winoground: two captions of the same words and two pictures; which belongs to which?

Thrush et al. 2022.  Caption 0 belongs to picture 0, and caption 1 to picture 1.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from scoregate.errors import ColumnError
from scoregate.evaluation.arrays import Names, coded, floats
from scoregate.evaluation.bootstrap import Sample, means

CHANCE = {"text": 1 / 4, "image": 1 / 4, "group": 1 / 6}


@dataclass(frozen=True)
class Winoground:
    """
    Shares of the complete items.  Equal scores are wrong.

    Attributes:
        text: for each picture the right caption has the higher score.
        image: for each caption the right picture has.
        group: both.
        incomplete: items that lack one of the four scores.
    """

    text: float
    image: float
    group: float
    items: int
    incomplete: int


def winoground(metric: Any, item: Names, caption: Names, image: Names) -> Winoground:
    """
    Return the shares of right choices.

    Raises:
        ColumnError: all scores are the same, or as `choices`.
    """
    found = choices(floats(metric, "metric", varied=True), item, caption, image)
    text, images = (np.array(column) for column in zip(*found.values(), strict=True))
    shares = [float(each.mean()) for each in (text, images, text & images)]
    return Winoground(shares[0], shares[1], shares[2], len(found), len(set(item)) - len(found))


def sample_of(right: Mapping[str, tuple[bool, bool]], cluster: Mapping[str, str] | None = None) -> Sample:
    """
    Return the sample of the items of `choices`, whose figures are the three shares.

    Args:
        cluster: of each item; by default each is drawn by itself.
    """
    items = sorted(right)
    names, units = coded([cluster[item] if cluster else item for item in items])
    text, images = (np.array([right[item][which] for item in items]) for which in (0, 1))
    columns = {"text": text, "image": images, "group": text & images}
    return means({name: (units, column) for name, column in columns.items()}, len(names), shares=columns)


def choices(metric: Any, item: Names, caption: Names, image: Names) -> dict[str, tuple[bool, bool]]:
    """
    Return for each complete item whether the captions, and whether the pictures, are chosen rightly.

    Args:
        caption, image: `0` or `1`; the four combinations of an item are four rows.

    Raises:
        ColumnError: another caption or image, two scores of one combination, or no complete item.
    """
    metric = floats(metric, "metric")
    names, rows = coded(item)
    scores = np.full((len(names), 2, 2), np.nan)
    for score, row, of_caption, of_image in zip(metric, rows, caption, image, strict=True):
        for argument, value in (("caption", of_caption), ("image", of_image)):
            if value not in ("0", "1"):
                raise ColumnError(argument, f"{value!r} is neither 0 nor 1")
        place = row, int(of_caption), int(of_image)
        if not np.isnan(scores[place]):
            raise ColumnError(
                "item", f"{names[row]} has two scores of caption {of_caption} with image {of_image}"
            )
        scores[place] = score
    complete = ~np.isnan(scores).any(axis=(1, 2))
    if not complete.any():
        raise ColumnError("item", "no item has all four scores")
    whole = scores[complete]
    right, wrong = np.diagonal(whole, axis1=1, axis2=2), whole[:, [1, 0], [0, 1]]
    text = (right > wrong).all(axis=1)  # the same picture, the other caption
    images = (right > wrong[:, ::-1]).all(axis=1)  # the same caption, the other picture
    kept = [name for name, keep in zip(names, complete, strict=True) if keep]
    return dict(zip(kept, zip(text.tolist(), images.tolist(), strict=True), strict=True))
