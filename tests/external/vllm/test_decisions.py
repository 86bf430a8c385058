"""The service with a real decision endpoint behind it: a tiny random LFM2-VL, served by vLLM."""

import base64
import io
import json

import httpx
import PIL.Image
import pytest

from tests.external.vllm.services import PATIENT_S, PICTURE, scored, server, service
from tests.support.rubrics import VALUES, question
from tests.support.tiny_lfm2_vl import LETTERS, NO, YES, decided

RGB = PIL.Image.open(io.BytesIO(PICTURE)).convert("RGB")
URI = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"
SHOWN = ("a red circle", "a blue circle", "a red star", "two rings")
CLOSE = {"abs": 1e-5}
YES_OR_NO = "\n\nReply with yes or no only."


@pytest.fixture(scope="module")
def decisions():
    """The server of the LFM2-VL."""
    with server("decisions") as found:
        yield found


@pytest.fixture(scope="module")
def client(decisions, tmp_path_factory):
    """A client of a service whose one model is the endpoint, with more questions than it takes at once."""
    tables = f"""
        [models.vqa]
        family = "decisions"
        base_url = "{decisions.base_url}"
        model = "m"
        body = "systemone"
        max_questions = 100
        timeout_s = {PATIENT_S}

        [dialects]
        enabled = ["decisions"]
        timeouts_s = {{ decisions = {PATIENT_S} }}
    """
    with service(tmp_path_factory.mktemp("with-decisions"), tables) as made:
        yield made


def theirs(decisions, questions, **more):
    """The response of the server itself to *questions* about the picture."""
    body = {"model": "m", "state": "A picture.", "images": [URI], "questions": questions, **more}
    return httpx.post(f"{decisions.base_url}/systemone", json=body, timeout=PATIENT_S, trust_env=False)


def ours(client, questions, **more):
    """The response of the service to them."""
    body = {"state": "A picture.", "images": [URI], "questions": questions, **more}
    return client.post("/v1/systemone", json=body)


def listed(options):
    """The end of a choice as the server writes it for this model."""
    lines = "\n".join(f"{letter} {option}" for (letter, _), option in zip(LETTERS, options, strict=False))
    return f"\n\nOptions:\n{lines}\n\nReply with the option code only."


def test_yes_and_no_have_the_probabilities_that_transformers_computes(client, decisions):
    """Four questions in one request, each to 1e-5 in float32: the shares and the mass."""
    for prompt, result in zip(SHOWN, scored(client, [*SHOWN], "vqascore"), strict=True):
        question = f'Does this figure show "{prompt}"? Please answer yes or no.'
        (yes, no), mass = decided(decisions.checkpoint, RGB, question + YES_OR_NO, (YES, NO))
        told = result["details"]["vqascore"]

        assert (told["p_yes"], told["p_no"]) == pytest.approx((yes * mass, no * mass), **CLOSE)
        assert told["label_mass"] == pytest.approx(mass, **CLOSE)
        assert result["scores"]["vqascore"] == pytest.approx(yes * mass, **CLOSE)


def test_choices_have_the_probabilities_that_transformers_computes(client, decisions):
    """A letter with a space before it is the letter."""
    choices = ["a ring", "a star", "a heart"]
    asked = {"id": 1, "text": "What is it?", "choices": choices, "expected": "a star"}
    shares, _ = decided(decisions.checkpoint, RGB, asked["text"] + listed(choices), LETTERS[:3])
    [result] = scored(client, ["a star"], "tifa", question_set=[asked])
    [question] = result["details"]["tifa"]["questions"]

    assert list(question["probabilities"].values()) == pytest.approx(list(shares), **CLOSE)
    assert question["answer"] == choices[shares.index(max(shares))]


@pytest.mark.parametrize("labels", ["1-5", "A-E"])
def test_grades_have_the_probabilities_that_transformers_computes(client, decisions, labels):
    """The labels are choices: letters are their own codes, and numbers get letters."""
    values = VALUES[labels]
    asked = question("semantic_consistency", "a red star", labels) + listed(values)
    shares, mass = decided(decisions.checkpoint, RGB, asked, LETTERS)
    [result] = scored(client, ["a red star"], "judge", rubric="semantic_consistency", labels=labels)
    told = result["details"]["judge"]["outputs"]["grade"]

    expected = {label: share * mass for label, share in zip(values, shares, strict=True)}
    assert told["probabilities"] == pytest.approx(expected, **CLOSE)
    assert told["label_mass"] == pytest.approx(mass, **CLOSE)


ASKED = {
    "red": {"type": "noul", "instructions": "It is red."},
    "shape": {"type": "choice", "instructions": "Which?", "criteria": {"ring": "a circle", "star": None}},
    "quality": {"type": "score", "instructions": "How good?", "criteria": ["poor", "good"]},
}


def test_the_dialect_answers_with_the_fields_of_the_server(client, decisions):
    """Of every kind of question; only the mass beside an answer is SGLang's."""
    here, there = ours(client, ASKED).json(), theirs(decisions, ASKED).json()

    def fields(body):
        return {name: each.keys() - {"x_label_mass"} for name, each in body["answers"].items()}

    assert there.keys() == here.keys()
    assert fields(there) == fields(here)
    assert there["object"] == here["object"]
    assert there["answers"]["quality"]["legend"] == here["answers"]["quality"]["legend"]
    assert there["diagnostics"]["red"].keys() == here["diagnostics"]["red"].keys()
    assert there["usage"].keys() == here["usage"].keys()


def test_the_dialect_has_the_servers_own_numbers(client, decisions):
    """For the text that the service writes: shares, mass, confidence."""
    text = "A picture.\n\nIs the following true? It is red. Please answer yes or no."
    expected = theirs(decisions, {"red": {**ASKED["red"], "instructions": text}}).json()
    found = ours(client, {"red": ASKED["red"]}).json()
    expected_answer, answer = expected["answers"]["red"], found["answers"]["red"]
    mass = expected["diagnostics"]["red"]["label_mass"]

    assert expected_answer["probabilities"] == pytest.approx(answer["probabilities"], **CLOSE)
    assert expected_answer["noul"] == pytest.approx(answer["noul"], **CLOSE)
    assert expected_answer["confidence"] == pytest.approx(answer["confidence"], **CLOSE)
    assert found["diagnostics"]["red"]["label_mass"] == pytest.approx(mass, **CLOSE)


@pytest.mark.parametrize(
    "questions",
    [
        {},
        {str(n): ASKED["red"] for n in range(65)},
        {"": ASKED["red"]},
        {"a": {**ASKED["red"], "type": "box"}},
        {"a": {**ASKED["red"], "criterion": {}}},
        {"a": {**ASKED["red"], "criteria": {"yes": "red"}}},
        {"a": {"type": "choice", "criteria": {}}},
        {"a": {"type": "choice", "criteria": {str(n): None for n in range(27)}}},
        {"a": {"type": "score", "criteria": ["good"]}},
        {"a": {"type": "score", "criteria": [str(n) for n in range(11)]}},
    ],
)
def test_what_the_server_rejects_is_rejected_by_the_dialect(client, decisions, questions):
    """With 400 and a message in the same place."""
    for response in (theirs(decisions, questions), ours(client, questions)):
        assert 400 == response.status_code
        assert 400 == response.json()["error"]["code"]
        assert response.json()["error"]["message"]


def test_more_questions_than_the_server_takes_are_answered(client, decisions):
    """It rejects the 65, and the service sends each half."""
    image = {"type": "input_image", "image_url": URI}
    asked = [{"type": "predicate", "instructions": f"There are {n}."} for n in range(65)]
    body = {"input": [{"role": "user", "content": [image]}], "questions": asked}
    answer = client.post("/v1/decisions", json=body)
    assert 200 == answer.status_code, answer.text
    found = [each["probability"] for each in answer.json()["answers"]]
    (yes, _), _ = decided(
        decisions.checkpoint,
        RGB,
        f"Is the following true? There are 64. Please answer yes or no.{YES_OR_NO}",
        (YES, NO),
    )

    assert 65 == len(found)
    assert found[64] == pytest.approx(yes, **CLOSE)


def test_a_label_that_is_no_token_is_an_error_with_the_servers_reason(client):
    """And only there: `/health` is for everybody."""
    reason = "is not one distinct token for this model"
    asked = {"id": 1, "text": "Which?", "choices": ["é", "ü"], "expected": "é"}
    [result] = scored(client, ["a star"], "tifa", question_set=[asked])
    error = result["errors"]["tifa"]

    assert {} == result["scores"]
    assert "upstream_failed" == error["code"]
    assert "returned status 400: " in error["detail"]
    assert reason in error["detail"]
    assert reason not in json.dumps(client.get("/health").json())


def test_a_question_beyond_the_models_length_is_an_error_that_names_it(client):
    """The error has the question's place and the server's reason, and there are no other answers."""
    long = {**ASKED["red"], "instructions": "long " * 600}
    response = ours(client, {"red": ASKED["red"], "long": long})
    message = response.json()["error"]["message"]

    assert 502 == response.status_code
    assert message.startswith("/questions/long: ")
    assert "maximum context length is 2048 tokens" in message


def test_a_broken_picture_has_no_score(client, decisions):
    """Neither from the server nor from the service."""
    broken = f"data:image/png;base64,{base64.b64encode(PICTURE[:40]).decode()}"

    assert 400 == theirs(decisions, ASKED, images=[broken]).status_code
    assert 400 == ours(client, ASKED, images=[broken]).status_code
