"""The service with a real vLLM behind it that serves the shipped question LLM."""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from models.checkpoints.locate import DEMO
from models.families.question_llm.model import QuestionLLM
from service.questions.sets import QuestionSet
from service.questions.styles.dsg import DSG as STYLE
from tests.external.vllm.services import LISTED, scored, server, service
from tests.support.fake_openai import FakeOpenAI, said
from tests.support.service import until

SET = json.dumps({"questions": [{"id": 1, "kind": "entity", "text": "Is there a heart?", "depends_on": []}]})


@pytest.fixture(scope="module")
def llm():
    """The server of the question LLM."""
    with server("llm") as found:
        yield found


@pytest.fixture(scope="module")
def client(llm, tmp_path_factory):
    """A client of the demo service, whose question LLM is served by vLLM."""
    tables = f"""
        [models.clip]
        family = "open_clip"
        checkpoint = "demo:clip"
        [models.vqa]
        family = "clip_flant5"
        checkpoint = "demo:clip_flant5"
        [models.questions]
        family = "openai"
        base_url = "{llm.base_url}"
        model = "m"
    """
    with service(tmp_path_factory.mktemp("with-llm"), tables) as client:
        yield client


@pytest.fixture
def with_llm(client, llm):
    """The same once vLLM serves; it is started again if the test that kills it was not the last."""
    if not llm.answers():
        llm.start()
        llm.wait()
    until(lambda: "ready" == client.get("/readyz").json()["models"]["questions"])
    return client


def written(client, prompts):
    """The answer of `/questions`."""
    return client.post("/questions", json={"prompts": prompts, "timeout_ms": 170_000})


def test_vllm_writes_the_sets_that_the_embedded_llm_writes(with_llm):
    """One checkpoint, one schema, two engines: the same questions, so the same ids."""
    prompts = [sample["right"] for sample in LISTED]
    embedded = QuestionLLM(DEMO / "question_llm", dtype="float32", device="cpu")
    written_here = embedded.score([embedded.prepare(STYLE.call(prompt)) for prompt in prompts])
    expected = [
        QuestionSet(prompt, "dsg", STYLE.parse(outcome.text)).id
        for prompt, outcome in zip(prompts, written_here, strict=True)
    ]

    assert expected == [made["id"] for made in written(with_llm, prompts).json()["sets"]]


def test_dsg_is_scored_with_questions_from_vllm(with_llm):
    """The right prompt of a sample scores above its wrong one."""
    sample = LISTED[1]
    right, wrong = scored(with_llm, [sample["right"], sample["wrong"]], "dsg")

    assert right["scores"]["dsg"] > wrong["scores"]["dsg"]


def test_a_killed_vllm_gives_explicit_errors_and_a_server_in_its_place_is_found(with_llm, llm):
    """kill -9 under load: a prompt gets a set or an error, stored sets stay, and the next server answers."""
    stored, fresh = "a white ring", [f"{n} {shape}s" for n in ("two", "four") for shape in ("star", "square")]
    assert 200 == written(with_llm, [stored]).status_code
    with ThreadPoolExecutor(4) as pool:
        answers = [pool.submit(written, with_llm, [prompt]) for prompt in fresh]
        llm.kill()
        outcomes = {answer.result().status_code for answer in answers}
    after = written(with_llm, ["three hearts"])
    kept = written(with_llm, [stored])
    until(lambda: "cannot be reached" in with_llm.get("/readyz").json()["models"]["questions"])
    fake = FakeOpenAI(llm.port)  # starts in no time
    fake.chat = lambda body: (200, said(SET))
    with fake.running():
        until(lambda: "ready" == with_llm.get("/readyz").json()["models"]["questions"])
        again = written(with_llm, ["three hearts"])

    assert outcomes <= {200, 502}
    assert (502, "question_llm_failed") == (after.status_code, after.json()["code"])
    assert (200, True) == (kept.status_code, kept.json()["sets"][0]["cached"])
    assert 200 == again.status_code
