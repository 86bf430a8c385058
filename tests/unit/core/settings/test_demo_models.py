"""Demo models: a trap that is said aloud at the start and in every answer."""

import pytest

from service.core.settings.tree import Settings

REAL = {"family": "clip_flant5", "checkpoint": "/srv/models/clip-flant5-xl"}
DEMO = {"family": "open_clip", "checkpoint": "demo:clip"}


def settings(**models):
    return Settings.model_validate({"models": models})


@pytest.mark.parametrize(
    ("models", "demo"),
    [
        ({"vqa": REAL, "clip": DEMO}, ["clip"]),
        ({"vqa": REAL, "clip": {"family": "open_clip", "model": "demo:clip"}}, ["clip"]),
        ({"vqa": REAL, "clip": {"family": "fake"}, "questions": {"family": "fake"}}, ["clip", "questions"]),
        ({"clip": {**DEMO, "model": "ViT-L-14"}, "vqa": {"family": "fake"}}, ["vqa"]),
        ({"vqa": REAL}, []),
        ({"clip": DEMO, "vqa": {"family": "fake"}}, ["clip", "vqa"]),
        ({"clip": DEMO, "ocr": {"family": "rapidocr"}}, ["clip"]),
    ],
)
def test_demo_models_are_those_without_real_weights(models, demo):
    """Shipped checkpoints under either name, and fakes, whatever stands beside them."""
    assert demo == settings(**models).demo_models
