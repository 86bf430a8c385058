"""A small random Qwen3-VL through `POST /score`: scores, grades, and batches by picture."""

from math import exp

import httpx
import pytest

from models.core.calls import LikelihoodCall
from models.families.qwen_vl.model import QwenVl
from service.core.settings.tree import Settings
from service.serving.loading import load_models
from service.web.app import create_app
from service.wiring.bootstrap import Service
from tests.support.pictures import b64
from tests.support.vl_checkpoints import GOLDEN, PICTURES, qwen_vl

pytestmark = pytest.mark.anyio

FILES = {name: b64((GOLDEN / "imagereward" / "images" / name).read_bytes()) for name in PICTURES}
FIRST, SECOND, *_ = FILES
QUESTIONS = [{"id": number, "text": f"Is number {number} a cat?"} for number in range(1, 13)]


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    """A checkpoint, to be read only."""
    return qwen_vl(tmp_path_factory.mktemp("qwen") / "qwen")


@pytest.fixture
def batches(monkeypatch):
    """The numbers of calls of all batches."""
    found, score = [], QwenVl.score
    monkeypatch.setattr(QwenVl, "score", lambda model, batch: found.append(len(batch)) or score(model, batch))
    return found


@pytest.fixture
async def client(directory, batches, tmp_path):
    """A client of the real app around the model, whose batches have the tokens of two pictures."""
    [cost] = {
        QwenVl(directory, dtype="float32", device="cpu").prepare(LikelihoodCall(PICTURES[FIRST], "?")).cost
    }
    table = {"family": "qwen_vl", "checkpoint": str(directory), "batch": {"max_cost_tokens": 2 * cost}}
    cache = {"questions": f"sqlite:///{tmp_path}/q"}
    settings = Settings.model_validate({"models": {"vqa": table}, "cache": cache})
    async with Service(settings, load_models(settings)) as service:
        transport = httpx.ASGITransport(create_app(service))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            batches.clear()
            yield client


async def scored(client, item, metric, **options):
    body = {"items": [item], "metrics": [metric], "options": {metric: options}, "explain": True}
    answer = await client.post("/score", json={**body, "timeout_ms": 600_000})
    assert 200 == answer.status_code, answer.text
    return answer.json()["results"][0]


async def test_vqascore_is_the_probability_of_yes(client, directory):
    """As the first token of the answer to the question that the model is asked."""
    result = await scored(client, {"prompt": "a red cat", "image": FILES[FIRST]}, "vqascore")
    model = QwenVl(directory, dtype="float32", device="cpu")
    question = 'Does this figure show "a red cat"? Please answer yes or no.'
    [expected] = model.score([model.prepare(LikelihoodCall(PICTURES[FIRST], question))])

    assert question == result["details"]["vqascore"]["question"]
    assert result["scores"]["vqascore"] == pytest.approx(exp(expected.log_p_yes), rel=1e-5)


async def test_questions_about_a_picture_are_few_batches(client, batches):
    """Twelve of them, though each counts as much as half a batch by itself."""
    item = {"prompt": "a red cat", "image": FILES[FIRST]}
    result = await scored(client, item, "dsg", question_set=QUESTIONS)

    assert 12 == len(result["details"]["dsg"]["questions"])
    assert 12 == sum(batches)
    assert len(batches) <= 3


async def test_it_grades_a_picture_beside_others(client):
    """An edit beside its source, by labels that are tokens of the model."""
    item = {"prompt": "make it red", "image": FILES[FIRST], "source": FILES[SECOND]}
    result = await scored(client, item, "judge", rubric="editing")

    assert 1 <= result["scores"]["judge"] <= 5
    assert "errors" not in result
