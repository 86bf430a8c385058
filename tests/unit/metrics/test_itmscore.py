"""ITMScore: the probability of a match, or its logit."""

from math import exp, inf

import pytest

from models.core.outcomes import Reward
from models.images.image import Image
from service.metrics.common.contract import Item
from service.metrics.itmscore import ItmScoreOptions, itmscore, metric
from service.observability.notes import Code
from tests.support.pictures import png

pytestmark = pytest.mark.anyio


class Models:
    """Answers every call with one reward."""

    def __init__(self, reward: Reward) -> None:
        self.reward = reward

    async def ask(self, role, calls):
        assert "itm" == role
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
