"""The published scores of t2v_metrics' example pictures, and their comparison with a service's."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# `genai_image_teaser.json` of t2v_metrics at 60ce07b, rounded.  Its README says which prompt a picture has.
PICTURES = ("DALLE3.png", "DeepFloyd.jpg", "Midjourney.jpg", "SDXL.jpg")
PROMPTS = {
    "images/0": "The brown dog chases the black dog around the tree.",
    "images/1": "Two cats sit at the window, the blue one intently watching the rain,"
    " the red one curled up asleep.",
}


@dataclass(frozen=True, slots=True)
class Published:
    """
    Scores of one metric by one model.

    Attributes:
        model: a pattern of the ids of the model.
        tolerance: for each value.  The pictures may be compressed copies of the scored ones.
        values: for each folder, in the order of `PICTURES`.
    """

    model: re.Pattern[str]
    tolerance: float
    values: Mapping[str, Sequence[float]]


PUBLISHED = {
    "vqascore": Published(
        re.compile("clip-flant5-xxl", re.IGNORECASE),
        0.05,
        {"images/0": (0.904, 0.317, 0.685, 0.602), "images/1": (0.848, 0.335, 0.780, 0.638)},
    ),
    "clipscore": Published(
        re.compile("ViT-L-14-336|vit-large-patch14-336", re.IGNORECASE),
        0.02,
        {"images/0": (0.273, 0.254, 0.314, 0.282), "images/1": (0.359, 0.327, 0.363, 0.364)},
    ),
}


def disordered(
    published: Sequence[float], scores: Sequence[float], tie: float = 0.005
) -> list[tuple[int, int]]:
    """Return the pairs whose order differs; published values within *tie* of each other have none."""
    pairs = [(a, b) for a in range(len(scores)) for b in range(a)]
    return [
        (a, b)
        for a, b in pairs
        if abs(published[a] - published[b]) > tie
        and (published[a] - published[b]) * (scores[a] - scores[b]) <= 0
    ]
