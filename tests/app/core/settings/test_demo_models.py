"""Demo models: a trap that is said aloud at the start and in every answer."""

import logging

import pytest

from tests.support.pictures import item

REAL = {"family": "clip_flant5", "checkpoint": "/srv/models/clip-flant5-xl"}
DEMO = {"family": "open_clip", "checkpoint": "demo:clip"}


@pytest.mark.anyio
@pytest.mark.parametrize("beside", [REAL, {"family": "fake"}])
async def test_demo_models_are_said_at_the_start_and_in_each_answer_that_rests_on_them(serve, caplog, beside):
    """Alone or beside real ones; one line in the log, and a warning for each demo model of an answer."""
    caplog.set_level(logging.WARNING)
    models = {"vqa": beside, "clip": DEMO, "questions": {"family": "transformers", "checkpoint": "/srv/llm"}}
    async with serve(models=models) as client:
        body = {"items": [item()], "metrics": ["vqascore", "clipscore"]}
        answer = (await client.post("/score", json=body)).json()

    demo = [name for name, table in models.items() if table in (DEMO, {"family": "fake"})]
    [line] = [record.getMessage() for record in caplog.records if record.name == "scoregate.service"]
    assert f"demo models: {', '.join(demo)}; their scores mean nothing for real pictures" == line
    meaning = "is a demo model: scores that rest on it mean nothing for real pictures"
    assert [f"{name} {meaning}" for name in demo] == answer["warnings"]
    assert [{"code": "demo_model"}] * len(demo) == answer["warning_codes"]


@pytest.mark.anyio
async def test_an_answer_without_a_demo_model_has_no_warning_of_one(serve):
    """Another metric of the service may rest on one."""
    async with serve(models={"vqa": REAL, "clip": DEMO, "questions": {"family": "fake"}}) as client:
        answer = (await client.post("/score", json={"items": [item()], "metrics": ["vqascore"]})).json()

    assert not {"warnings", "warning_codes"} & answer.keys()
