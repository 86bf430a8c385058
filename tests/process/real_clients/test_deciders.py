"""OpenAI's own SDK reads what `POST /v1/decisions` answers."""

from pathlib import Path

import httpx
import pytest

from tests.process.real_clients.conftest import PICTURES, PROMPT
from tests.support import clients

SCRIPT = Path(__file__).with_name("deciders.py")
URI = f"data:image/png;base64,{PICTURES[0]}"


@pytest.fixture(scope="module")
def answers(service):
    """What the SDK made of the first picture."""
    given = {"url": service.dialects, "prompt": PROMPT, "picture": URI}
    return clients.answers(SCRIPT, given)


def test_a_predicates_probability_is_that_of_sglangs_body(service, answers):
    """Both are P("Yes") among yes and no, of the same words."""
    asked = {"id": "right", "type": "yes_no", "question": f"It shows {PROMPT}."}
    body = {"model": "vqa", "input": "", "images": [{"url": URI}], "questions": [asked]}
    other = httpx.post(f"{service.dialects}/v1/decisions", json=body, timeout=60, trust_env=False)
    answer = other.raise_for_status().json()["answers"]["right"]

    assert ["right", pytest.approx(answer["probabilities"]["yes"])] == answers["predicate"]


def test_the_likeliest_choice_is_typed(answers):
    """With the probability of each."""
    chosen, probabilities = answers["choice"]

    assert {"red", "blue"} == probabilities.keys()
    assert chosen == max(probabilities, key=probabilities.get)
    assert 1 == pytest.approx(sum(probabilities.values()))


def test_a_score_is_the_mean_of_its_levels(answers):
    """Weighted by their probabilities."""
    score, probabilities = answers["score"]

    assert score == pytest.approx(sum(int(value) * share for value, share in probabilities.items()))


def test_what_is_refused_is_the_sdks_bad_request(answers):
    """With the field in its message."""
    assert "choices" in answers["refusal"]
