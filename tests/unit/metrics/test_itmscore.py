"""ITMScore: the probability of a match, or its logit."""

from math import exp, inf

import pytest

from models.core.calls import ContrastCall, RewardCall
from models.core.outcomes import Reward
from models.images.image import Image
from service.metrics.common.contract import Item
from service.metrics.itmscore import ItmScoreOptions, itmscore, metric
from service.observability.notes import Code
from tests.support.pictures import png

pytestmark = pytest.mark.anyio


class Models:
    """Answers every call of a kind with one reward."""

    def __init__(self, reward: Reward, kind: type = RewardCall) -> None:
        self.reward, self.kind = reward, kind

    async def ask(self, role, calls):
        assert "itm" == role
        assert all(isinstance(call, self.kind) for call in calls)
        return [self.reward for _ in calls]


@pytest.fixture
def pair():
    return Item(Image(png()), "a red square")


@pytest.mark.parametrize("logit", [-800.0, -2.0, 0.0, 3.0, 800.0])
async def test_the_score_is_the_logistic_function_of_the_logit(pair, logit):
    """Of any logit, also where it saturates."""
    probability = await itmscore(pair, Models(Reward((logit,))), ItmScoreOptions())
    raw = await itmscore(pair, Models(Reward((logit,))), ItmScoreOptions(output="logit"))

    assert probability.value == pytest.approx(1 / (1 + exp(-logit)) if logit > -700 else 0)
    assert (logit, probability.details) == (raw.value, raw.details)
    assert [(0, 1), (-inf, inf)] == [
        metric.range_of(options) for options in (ItmScoreOptions(), ItmScoreOptions(output="logit"))
    ]


async def test_a_cut_prompt_has_a_warning(pair):
    """With the code that clients know."""
    found = await itmscore(pair, Models(Reward((1.0,), truncated=True)), ItmScoreOptions())

    assert [Code.PROMPT_TRUNCATED] == [note.code for note in found.notes]


@pytest.mark.parametrize(("output", "expected"), [("itc", 0.25), ("itm_itc", 3.25)])
async def test_the_contrast_is_the_cosine_and_may_be_added_to_the_match(pair, output, expected):
    """To the head's output for a match, not to the logit of the probability."""
    models = Models(Reward((0.25, 1.0, 3.0), truncated=True), ContrastCall)
    found = await itmscore(pair, models, ItmScoreOptions(output=output))

    assert expected == found.value
    assert {"cosine": 0.25, "match": 3.0, "logit": 2.0}.items() <= found.details.items()
    assert found.details["probability"] == pytest.approx(1 / (1 + exp(-2)))
    assert [Code.PROMPT_TRUNCATED] == [note.code for note in found.notes]
    assert {"itc": (-1, 1), "itm_itc": (-inf, inf)}[output] == metric.range_of(ItmScoreOptions(output=output))
