"""The real app around a judge who knows the right prompts."""

import json
from math import log

import pytest
from starlette.testclient import TestClient

from demo.draw_samples import SAMPLES
from demo.training.language import scene_graph
from models.core.outcomes import Likelihood
from service.web.app import create_app
from service.wiring.bootstrap import Service
from service.wiring.load import load_settings
from tests.support.fake_objects import Detector

RIGHT = {sample.right.text for sample in SAMPLES}


@pytest.fixture
def judge(fakes):
    """The VQA model says yes to right prompts, but for those in `judge.blind`, and to no question."""

    def answer(call):
        prompt = call.question.partition('"')[2].partition('"')[0]
        yes = 0.9 if prompt in RIGHT - answer.blind else 0.2
        return Likelihood((log(yes), log(0.9)), log(yes), log(1 - yes))

    answer.blind = set()
    fakes["vqa"].answer = answer
    return answer


@pytest.fixture
def detector(fakes):
    """A detector that finds its `found`, at first nothing."""
    fakes["detector"] = Detector()
    return fakes["detector"]


@pytest.fixture
def client(fakes, detector, tmp_path):
    """The real app around fake models; the questions are those that the demo's LLM is taught."""
    for statement in (s for sample in SAMPLES for s in (sample.right, sample.wrong)):
        graph = [
            {"id": q.id, "kind": q.kind, "text": q.text, "depends_on": q.depends_on}
            for q in scene_graph(statement)
        ]
        fakes["questions"].texts[statement.text] = json.dumps({"questions": graph})
    store = {"SCOREGATE_CACHE__QUESTIONS": f"sqlite:///{tmp_path}/questions.sqlite3"}
    service = Service(load_settings(None, store), fakes)
    with TestClient(create_app(service)) as client, client.portal.wrap_async_context_manager(service):
        yield client
