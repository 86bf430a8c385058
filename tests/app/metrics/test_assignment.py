"""Which model serves which role of a metric: what the settings name, else the role's first model."""

import pytest

from tests.support.fakes import FakeQuestionLLM, FakeVqa
from tests.support.pictures import item


@pytest.mark.anyio
async def test_a_metric_asks_the_models_that_its_table_names(serve, fakes):
    """The question LLM and the VQA model of `dsg` are not those of `vqascore`."""
    fakes |= {"writer": FakeQuestionLLM(), "careful": FakeVqa()}
    roles = {"writer": "questions", "careful": "vqa"}
    tree = {name: {"family": "fake", "role": roles.get(name, name)} for name in fakes}
    body = {"items": [item("a red dog")], "metrics": ["vqascore", "dsg"]}
    tables = {"dsg": {"vqa": "careful", "questions": "writer"}}
    async with serve(models=tree, metrics=tables) as client:
        answer = (await client.post("/score", json=body)).json()
        await client.post("/questions", json={"prompts": ["a blue cat"]})

    assert {"vqa", "careful", "writer"} == answer["models"].keys()
    assert (1, 1, 2, 0) == tuple(len(fakes[name].calls) for name in ("vqa", "careful", "writer", "questions"))
