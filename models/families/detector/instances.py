"""
Detections from the queries of a segmentation network.

The arithmetic is that of transformers' `post_process_instance_segmentation`, so scores and masks are equal.
"""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F

from models.core.contract import ModelError
from models.core.outcomes.detections import Box, Detection, Detections, packed

SIDE = 384  # of the square on which masks are compared and scored


@dataclass(frozen=True, slots=True)
class Instances:
    """
    Q candidates for objects in one picture.

    Attributes:
        scores: (Q,): the class's probability times the mean probability of the mask's pixels.
        labels: (Q,): class indices.
        masks: (Q, 384, 384) of booleans, stretched over the picture.
    """

    scores: np.ndarray
    labels: np.ndarray
    masks: np.ndarray

    def detections(
        self, labels: tuple[str, ...], size: tuple[int, int], threshold: float
    ) -> Detections | ModelError:
        """
        Return those that score more than *threshold*, the highest score first, on a picture of that *size*.
        """
        if not np.isfinite(self.scores).all():
            return ModelError("the model's output is not finite")
        order = np.argsort(-self.scores, kind="stable")
        found = []
        for number in order[self.scores[order] > threshold]:
            mask = stretched(self.masks[number], size)
            if (box := box_of(mask)) is not None:
                left, top, right, bottom = map(int, box)
                part = packed(mask[top:bottom, left:right])
                score = min(1.0, float(self.scores[number]))
                found.append(Detection(labels[self.labels[number]], score, box, part))
        return Detections(tuple(found))


def instances_of(classes: torch.Tensor, masks: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """
    Return the likeliest pairs of a query and a class, as many as there are queries.

    Args:
        classes: logits (N, Q, C+1), the last of no object.
        masks: logits (N, Q, h, w).

    Returns:
        Scores (N, Q), class indices (N, Q) and masks (N, Q, 384, 384) of booleans.
    """
    queries, count = classes.shape[1], classes.shape[2] - 1
    shares = classes.softmax(-1)[..., :-1].flatten(1)
    shares, pairs = shares.topk(queries, dim=-1, sorted=False)
    rows = torch.arange(len(masks), device=masks.device)[:, None]
    masks = masks[rows, torch.div(pairs, count, rounding_mode="floor")]  # before they are large
    masks = F.interpolate(masks, size=(SIDE, SIDE), mode="bilinear", align_corners=False)
    inside = masks > 0
    area = inside.flatten(2).sum(-1)
    sure = masks.sigmoid_().mul_(inside).flatten(2).sum(-1) / (area + 1e-6)
    return shares * sure, pairs % count, inside


def stretched(mask: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Resize a mask (384, 384) to a picture of that width and height, by nearest pixel."""
    width, height = size
    square = torch.from_numpy(np.asarray(mask, np.uint8))[None, None]
    whole: np.ndarray = F.interpolate(square, size=(height, width), mode="nearest")[0, 0].bool().numpy()
    return whole


def box_of(mask: np.ndarray) -> Box | None:
    """Return left, top, right and bottom around a mask's pixels; None for an empty mask."""
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    if not len(rows):
        return None
    return float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1)
