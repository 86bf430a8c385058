"""VQAScore and CLIPScore, from the numbers that a model gave."""

from math import exp, inf, log
from types import SimpleNamespace

import pytest

from models.core.outcomes import Likelihood
from service.metrics.clipscore import ClipScoreOptions, clipscore
from service.metrics.clipscore import metric as clip_metric
from service.metrics.common.contract import Item
from service.metrics.vqascore import VqaScoreOptions, vqascore
from service.metrics.vqascore import metric as vqa_metric
from service.observability.notes import Code, Note

pytestmark = pytest.mark.anyio

ITEM = Item("picture", "a dog")
TEMPLATE = 'Does "{}" fit?'
ANSWER = Likelihood((log(0.8), log(0.5)), log_p_yes=log(0.8), log_p_no=log(0.1))
LONG = Note(Code.PROMPT_TRUNCATED, "the prompt was cut")


class Vqa:
    """Gives ANSWER, and keeps what it was called with."""

    question = TEMPLATE

    def __init__(self, answer=ANSWER):
        self.answer, self.calls = answer, []

    async def ask(self, image, questions, expected):
        self.calls.append((image, questions, expected))
        return [self.answer]


async def scored(likelihood=ANSWER, **options):
    vqa = Vqa(likelihood)
    return await vqascore(ITEM, SimpleNamespace(vqa=vqa), VqaScoreOptions(**options)), vqa.calls


@pytest.mark.parametrize(
    ("options", "value", "range_"),
    [
        ({}, (0.8 * 0.5) ** 0.5, (0, 1)),
        ({"normalization": "product"}, 0.8 * 0.5, (0, 1)),
        ({"normalization": "first_token"}, 0.8, (0, 1)),
        ({"output": "logit"}, log(8), (-inf, inf)),
        ({"output": "negative_no"}, -0.1, (-1, 0)),
    ],
)
async def test_vqascore_is_the_likelihood_of_the_answer(options, value, range_):
    """The mean of the log-probabilities is the released code's, the product the paper's equation 3."""
    score, _ = await scored(**options)

    assert pytest.approx(value) == score.value
    assert range_ == vqa_metric.range_of(VqaScoreOptions(**options))


async def test_vqascore_shows_the_question_and_each_probability():
    """`details` hold all that the score was made of."""
    score, calls = await scored(normalization="product")
    expected = {"p_yes": 0.8, "p_no": 0.1, "logit": log(8), "label_mass": 0.9, "likelihood": 0.4}
    texts = {"question": 'Does "a dog" fit?', "answer": "Yes", "normalization": "product"}

    assert [("picture", [texts["question"]], "Yes")] == calls
    assert {*expected, *texts, "log_probs"} == {*score.details}
    assert texts == {name: score.details[name] for name in texts}
    assert pytest.approx(expected) == {name: score.details[name] for name in expected}
    assert list(ANSWER.log_probs) == score.details["log_probs"]


async def test_a_question_and_an_answer_of_the_callers_own_hold_the_prompt():
    """VisualGPTScore: the likelihood of the prompt itself."""
    score, calls = await scored(question="What is this?", answer="It is {}.")

    assert [("picture", ["What is this?"], "It is a dog.")] == calls
    assert "It is a dog." == score.details["answer"]


async def test_a_question_that_was_cut_is_a_warning():
    whole, _ = await scored()
    cut, _ = await scored(Likelihood(ANSWER.log_probs, ANSWER.log_p_yes, ANSWER.log_p_no, truncated=True))

    assert () == whole.warnings
    assert [Code.QUESTION_TRUNCATED] == [note.code for note in cut.warnings]


@pytest.mark.parametrize(
    ("scale", "cosine", "value", "range_"),
    [
        ("cosine", 0.3, 0.3, (-1, 1)),
        ("cosine", -0.3, -0.3, (-1, 1)),
        ("hessel", 0.3, 0.75, (0, 2.5)),
        ("hessel", -0.3, 0.0, (0, 2.5)),
        ("geneval", 0.3, 30.0, (0, 100)),
        ("geneval", -0.3, 0.0, (0, 100)),
    ],
)
async def test_clipscore_is_the_cosine_or_its_positive_part_times_a_factor(scale, cosine, value, range_):
    """2.5 is Hessel et al.'s factor, section 3, and 100 the one of GenEval's comparison."""
    options = ClipScoreOptions(scale=scale)

    async def given(image, prompt):
        assert ("picture", "a dog") == (image, prompt)
        return cosine, (LONG,)

    score = await clipscore(ITEM, SimpleNamespace(clip=SimpleNamespace(cosine=given)), options)

    assert pytest.approx(value) == score.value
    assert {"cosine": cosine, "scale": scale} == score.details
    assert (LONG,) == score.warnings
    assert range_ == clip_metric.range_of(options)


async def test_the_mean_and_the_product_are_the_same_for_one_token():
    """A model that ends its answer after one token has no </s> to average over."""
    single = Likelihood((log(0.8),), log_p_yes=log(0.8), log_p_no=log(0.1))
    values = [(await scored(single, normalization=each))[0].value for each in ("reference", "product")]

    assert values == pytest.approx([exp(log(0.8))] * 2)
