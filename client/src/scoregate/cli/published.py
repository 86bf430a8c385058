"""The published scores of t2v_metrics' example pictures."""

import re
from pathlib import Path

from scoregate.cli.known import Case, Known

# `genai_image_teaser.json` of t2v_metrics at 60ce07b, rounded.  Its README says which prompt a picture has.
PICTURES = ("DALLE3.png", "DeepFloyd.jpg", "Midjourney.jpg", "SDXL.jpg")
PROMPTS = {
    "images/0": "The brown dog chases the black dog around the tree.",
    "images/1": "Two cats sit at the window, the blue one intently watching the rain,"
    " the red one curled up asleep.",
}
# The tolerance is wide: the pictures may be compressed copies of the scored ones.
PUBLISHED = {
    "vqascore": (
        re.compile("clip-flant5-xxl", re.IGNORECASE),
        0.05,
        {"images/0": (0.904, 0.317, 0.685, 0.602), "images/1": (0.848, 0.335, 0.780, 0.638)},
    ),
    "clipscore": (
        re.compile("ViT-L-14-336|vit-large-patch14-336", re.IGNORECASE),
        0.02,
        {"images/0": (0.273, 0.254, 0.314, 0.282), "images/1": (0.359, 0.327, 0.363, 0.364)},
    ),
}


def published(checkout: Path) -> list[Known]:
    """Return the published scores, with the pictures of a *checkout* of t2v_metrics."""
    return [
        Known(
            metric,
            model,
            tolerance,
            {
                folder: [
                    Case(f"{folder}/{name}", checkout / folder / name, PROMPTS[folder], score)
                    for name, score in zip(PICTURES, scores, strict=True)
                ]
                for folder, scores in values.items()
            },
            "the published scores need --t2v-metrics DIR",
        )
        for metric, (model, tolerance, values) in PUBLISHED.items()
    ]
