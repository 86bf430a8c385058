"""A VQA model behind a decision endpoint: this service's own, in each of the three bodies."""

from base64 import b64decode

import pytest

from models.core.calls import ChoiceCall, LikelihoodCall
from models.core.contract import CHOICE_QUESTION
from models.families.decisions.model import DecisionModel
from models.families.fake.model import answer
from models.images.image import Image
from tests.app.web.dialects.conftest import PICTURES

pytestmark = pytest.mark.anyio

COLOURS = ("red", "blue")
STATE = {"openai": "", "sglang": "A picture.\n\n", "systemone": "A picture.\n\n"}


@pytest.mark.parametrize("body", STATE)
async def test_it_has_the_probabilities_of_the_model_behind_it(dialects, body):
    """Both questions in one request; OpenAI's body has them among the options alone."""
    image = Image(PICTURES[0])
    calls = [LikelihoodCall(image, "It is red."), ChoiceCall(image, "Which colour?", COLOURS)]
    model = DecisionModel("vqa", body, extra_body={})
    prepared = [model.prepare(call) for call in calls]
    behind = Image(decoded(prepared[0].data.uri))  # the picture as it was sent
    asked = f"{STATE[body]}Is the following true? It is red. Please answer yes or no."
    local = answer(LikelihoodCall(behind, asked))
    question = CHOICE_QUESTION.replace("{}", f"{STATE[body]}Which colour?")
    first, second = (sum(each) for each in answer(ChoiceCall(behind, question, COLOURS)).log_probs)
    sent = []
    async with dialects() as apps:

        async def post(path, content):
            sent.append(path)
            response = await apps.main.post(f"/v1/{path}", json=content)
            assert 200 == response.status_code, response.text
            return response.json()

        yes_no, choice = await model.answer_all(prepared, post)

    assert 1 == len(sent)
    [there], [here] = choice.log_probs
    assert (local.logit, first - second) == pytest.approx((yes_no.logit, there - here))
    if body != "openai":
        assert (local.log_p_yes, first) == pytest.approx((yes_no.log_p_yes, there))


def decoded(uri):
    """The file in a data URI."""
    return b64decode(uri.partition(",")[2])
