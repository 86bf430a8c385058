"""OpenAI's own SDK reads what `chat_judge` answers."""

from math import exp
from pathlib import Path

import pytest

from tests.process.real_clients.conftest import PICTURES, PROMPT
from tests.support import clients

SCRIPT = Path(__file__).with_name("judges.py")


@pytest.fixture(scope="module")
def answers(service):
    """What the SDK made of the first picture."""
    given = {"url": service.dialects, "prompt": PROMPT, "picture": f"data:image/png;base64,{PICTURES[0]}"}
    return clients.answers(SCRIPT, given)


def test_the_score_is_that_of_the_api(service, answers):
    """As JSON in the message."""
    assert {"score": service.scores[0], "metric": "vqascore"} == answers["score"]


def test_the_log_probabilities_of_yes_and_no_are_typed(answers):
    """Both, and no more than 1 together."""
    assert {"Yes", "No"} == answers["logprobs"].keys()
    assert 0 < sum(map(exp, answers["logprobs"].values())) <= 1


def test_what_is_refused_is_the_sdks_bad_request(answers):
    """With the field in its message."""
    assert "/stream" in answers["refusal"]
