"""Demo models: a trap that is said aloud at the start and in every answer."""

from service.core.settings.tree import Settings
from service.process.check import check
from service.wiring.load import DEMO_PROFILE, load_settings


def settings(**models):
    return Settings.model_validate({"models": models})


def test_the_check_of_a_profile_names_its_demo_models():
    """Those of the demo profile, and those that one variable leaves beside a real one."""
    mixed = {"SCOREGATE_MODELS__VQA__CHECKPOINT": "owner/name"}
    told = (
        "Demo models: clip, {}judge, questions, nli, detector. Their scores mean nothing for real pictures."
    )

    assert told.format("vqa, ") in check(load_settings(DEMO_PROFILE, {}))
    assert told.format("") in check(load_settings(DEMO_PROFILE, mixed))
    served = {"family": "openai_vlm", "base_url": "http://localhost:1/v1", "model": "real"}
    assert "Demo models" not in check(settings(vqa=served))
