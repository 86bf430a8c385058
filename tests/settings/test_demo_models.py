"""Demo models beside real ones: a trap that is said aloud at the start and in every answer."""

import logging

import pytest

from service.check import check
from service.settings.load import DEMO_PROFILE, load_settings
from service.settings.tree import Settings
from tests.conftest import item

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
        ({"clip": DEMO, "vqa": {"family": "fake"}}, []),
        ({"clip": DEMO, "ocr": {"family": "rapidocr"}}, []),
        ({"clip": DEMO, "ocr": {"family": "rapidocr"}, "vqa": REAL}, ["clip"]),
    ],
)
def test_demo_models_are_those_without_real_weights(models, demo):
    """Shipped checkpoints under either name, and fakes; only beside real ones do they matter."""
    assert demo == settings(**models).demo_models


def test_one_variable_makes_the_demo_profile_a_mixture():
    """A real VQA model in the demo profile leaves the demo CLIP and the demo LLM beside it."""
    assert [] == load_settings(DEMO_PROFILE, {}).demo_models
    mixed = load_settings(DEMO_PROFILE, {"SCOREGATE_MODELS__VQA__CHECKPOINT": "owner/name"})

    assert ["clip", "questions", "nli", "detector"] == mixed.demo_models
    assert (
        "Demo models stand beside real ones: clip, questions, nli, detector. Their scores mean nothing."
        in check(mixed)
    )
    assert "Demo models" not in check(load_settings(DEMO_PROFILE, {}))


@pytest.mark.anyio
async def test_a_mixture_is_said_at_the_start_and_in_each_answer_that_rests_on_it(serve, caplog):
    """One line in the log; a warning for each demo model of an answer, and none without one."""
    caplog.set_level(logging.WARNING)
    models = {"vqa": REAL, "clip": DEMO, "questions": {"family": "transformers", "checkpoint": "/srv/llm"}}
    async with serve(models=models) as client:
        bodies = [{"items": [item()], "metrics": [name]} for name in ("vqascore", "clipscore")]
        real, demo = [(await client.post("/score", json=body)).json() for body in bodies]

    [line] = [record.getMessage() for record in caplog.records if record.name == "scoregate.service"]
    assert "demo models stand beside real ones: clip; their scores mean nothing" == line
    assert "warnings" not in real
    assert ["clip is a demo model: scores that rest on it mean nothing for real pictures"] == demo["warnings"]


@pytest.mark.anyio
async def test_a_profile_of_demo_models_alone_says_nothing(serve, caplog):
    """Whoever runs the demo knows."""
    caplog.set_level(logging.WARNING)
    async with serve(models={role: {"family": "fake"} for role in ("vqa", "clip", "questions")}) as client:
        answer = (await client.post("/score", json={"items": [item()]})).json()

    assert "warnings" not in answer
    assert not [record for record in caplog.records if record.name == "scoregate.service"]
