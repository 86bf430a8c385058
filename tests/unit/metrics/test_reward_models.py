"""Metrics that are one output of a model: the call that it gets, the score, and the details."""

from math import exp

import pytest

from models.core.calls import EditCall, ProgressCall, RerankCall, RewardCall
from models.core.outcomes import Reward
from models.images.image import Image
from service.core.errors import MissingImage
from service.metrics.common.contract import Item, Score
from service.metrics.common.registry import own
from service.observability.notes import Code
from tests.support.pictures import png

pytestmark = pytest.mark.anyio

IMAGE, SOURCE = Image(png()), Image(png("lime"))
PROMPT = "a red square"


class Models:
    """Has one result for all calls, which it records with their roles."""

    def __init__(self, reward: Reward) -> None:
        self.reward, self.calls = reward, []

    async def ask(self, role, calls):
        self.calls += [(role, call) for call in calls]
        return [self.reward for _ in calls]


async def scored(name, models, item=None, **options):
    """Return the score of *item* by a metric, by default of an image and its source."""
    metric = own()[name]
    return await metric.score(item or Item(IMAGE, PROMPT, source=SOURCE), models, metric.options(**options))


CASES = {
    "aesthetic": (RewardCall(IMAGE), (5.5,), 5.5, {"rating": 5.5}),
    "artifact": (RewardCall(IMAGE), (0.25,), 0.75, {"artifact_ratio": 0.25}),
    "safety": (RewardCall(IMAGE), (0.75, 0.125, 0.5), 0.75, {"unsafe": [0.125, 0.5]}),
    "imagereward": (RewardCall(IMAGE, PROMPT), (-1.5,), -1.5, {"reward": -1.5}),
    "reward_model": (RewardCall(IMAGE, PROMPT), (3.0, 0.5), 3.0, {"outputs": [3.0, 0.5]}),
    "hpsv3": (
        RewardCall(IMAGE, PROMPT),
        (3.0, 0.5),
        3.0,
        {"mu": 3.0, "sigma": 0.5, "deviation": exp(0.5)},
    ),
    "hpsv3pp": (
        ProgressCall(IMAGE, PROMPT, 0.0),
        (3.0, 0.5, 0.25),
        3.0,
        {"mu": 3.0, "sigma": 0.5, "deviation": exp(0.5), "capability": 0.25},
    ),
    "editreward": (
        EditCall(IMAGE, PROMPT, SOURCE),
        (1.0, 2.0, 3.0, 4.0, 5.0, 6.0),
        1.0,
        {
            "mu": 1.0,
            "sigma": 2.0,
            "following": 3.0,
            "following_sigma": 4.0,
            "quality": 5.0,
            "quality_sigma": 6.0,
        },
    ),
}
ROLES = {"reward_model": "reward"}  # others are called like their metric


@pytest.mark.parametrize("name", CASES)
async def test_a_model_gets_one_call_and_its_outputs_are_score_and_details(name):
    """By the metric's role, with the prompt only if the metric reads it."""
    call, outputs, value, details = CASES[name]
    models = Models(Reward(outputs))

    found = await scored(name, models)

    assert Score(value, details) == found
    assert [(ROLES.get(name, name), call)] == models.calls


@pytest.mark.parametrize(("output", "activated"), [("probability", True), ("logit", False)])
async def test_a_reranker_is_called_for_its_probability_or_its_logit(output, activated):
    """The model applies the function, or does not; the details say which."""
    models = Models(Reward((0.5,)))

    found = await scored("rerankscore", models, output=output)

    assert Score(0.5, {"output": output}) == found
    assert [("reranker", RerankCall(IMAGE, PROMPT, activated=activated))] == models.calls


async def test_the_progress_of_training_is_part_of_the_call():
    """Of HPSv3++, whose preference depends on it."""
    models = Models(Reward((3.0, 0.5, 0.25)))

    await scored("hpsv3pp", models, progress=0.75)

    assert [("hpsv3pp", ProgressCall(IMAGE, PROMPT, 0.75))] == models.calls


async def test_imagereward_warns_about_a_prompt_that_was_cut():
    """And only then."""
    cut, whole = [
        await scored("imagereward", Models(Reward((1.0,), truncated=truncated)))
        for truncated in (True, False)
    ]

    assert [(Code.PROMPT_TRUNCATED, "the prompt was cut at ImageReward's 35 tokens")] == [
        (note.code, note.text) for note in cut.notes
    ]
    assert () == whole.notes


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("editreward", "editreward needs the item's source, and it has none"),
        ("clip_i", "clip_i needs the item's references, and it has none"),
        ("videoalign", "videoalign needs a video, or several frames, and the item has one frame"),
    ],
)
async def test_an_item_without_the_images_that_a_metric_needs_is_an_error(name, error):
    """Which says what is missing; no model is called."""
    models = Models(Reward((1.0,)))

    with pytest.raises(MissingImage) as missing:
        await scored(name, models, Item(IMAGE, PROMPT))

    assert error == str(missing.value)
    assert [] == models.calls


class Cosine:
    """A CLIP that finds every image equally like its prompt."""

    logit_scale = 20.0

    def __init__(self, *, cut: bool) -> None:
        self.clip, self.warnings, self.asked = self, ("cut",) if cut else (), []

    async def cosine(self, image, prompt):
        self.asked.append((image, prompt))
        return 0.25, self.warnings


@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize(
    ("name", "options", "value", "details"),
    [
        ("hpsv2", {}, 0.25, {"cosine": 0.25}),
        ("pickscore", {}, 0.25, {"cosine": 0.25, "logit_scale": 20.0, "scale": "cosine"}),
        ("pickscore", {"scale": "logit"}, 5.0, {"cosine": 0.25, "logit_scale": 20.0, "scale": "logit"}),
    ],
    ids=["hpsv2", "pickscore", "pickscore's logit"],
)
async def test_a_preference_by_clip_is_its_cosine_or_its_logit(name, options, value, details, cut):
    """With the warning of CLIP, if there is one."""
    clip = Cosine(cut=cut)

    assert Score(value, details, warnings=clip.warnings) == await scored(name, clip, **options)
    assert [(IMAGE, PROMPT)] == clip.asked
