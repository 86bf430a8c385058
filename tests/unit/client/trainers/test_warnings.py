"""What the service warns about during training: told once, counted, an error where the reward is strict."""

import pickle
import warnings

import httpx2 as httpx
import pytest

from scoregate import ScoregateWarning
from scoregate.errors import WarnedError
from scoregate.trainers.flow_grpo import factory
from scoregate.trainers.reward import NoScore, Reward
from scoregate.trainers.trl import reward_function
from tests.support.pictures import png
from tests.unit.client.trainers.scripted import Scripted, answer

TEXT = "item 0, vqascore: the question was cut"
CUT = {"code": "prompt_truncated", "item": 0, "metric": "vqascore"}


def warning(asked, request):
    """A step whose answer warns about the first item."""
    content = answer(asked).json() | {"warnings": [TEXT], "warning_codes": [CUT]}
    return httpx.Response(200, json=content)


def test_each_kind_is_told_once_and_counted(scripted):
    """Over all requests of a run."""
    reward, _ = scripted(*[warning] * 6, batch=2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            reward([png()] * 4, ["0.1", "0.2", "0.3", "0.4"])

    assert ["prompt_truncated: item 0, vqascore: the question was cut"] == [
        str(each.message) for each in caught if each.category is ScoregateWarning
    ]
    assert {"prompt_truncated": 6} == reward.warned


def test_kinds_of_a_service_without_codes_do_not_differ_by_their_numbers(scripted):
    """Neither by what stands behind a colon, such as the words of one prompt."""

    def numbered(asked, request):
        number = asked["items"][0]["prompt"]
        texts = [f"item 0, vqascore: {number} of it", f"words that x never learnt: {number}"]
        return httpx.Response(200, json=answer(asked).json() | {"warnings": texts})

    reward, _ = scripted(*[numbered] * 5)
    with pytest.warns(ScoregateWarning) as caught:
        _ = [reward([png()], [f"0.{number}"]) for number in range(5)]

    assert 2 == len(caught)
    assert [5, 5] == list(reward.warned.values())


def test_pythons_filters_make_errors_of_them(scripted):
    """Each time, and not the first time alone."""
    reward, _ = scripted(*[warning] * 2)
    for _ in range(2):
        with pytest.raises(ScoregateWarning, match="the question was cut"):
            reward([png()], ["0.1"])


def test_a_strict_reward_has_no_score_for_what_is_warned_about(scripted):
    """The others have theirs, nothing stands for it, and it is not asked again."""
    reward, double = scripted(warning, warning, strict=True)
    bad, good = reward.outcomes([png()] * 2, ["0.1", "0.2"])

    assert isinstance(bad, WarnedError)
    assert 0.2 == good
    assert 1 == len(double.requests)
    with pytest.raises(NoScore, match="picture 0: warned: vqascore: the question was cut"):
        reward([png()] * 2, ["0.1", "0.2"], fill=-10.0)


def test_every_adapter_takes_it():
    """As a setting; a reward that travels stays strict."""
    double = Scripted([warning] * 2)
    score = factory(strict=True, transport=double.transport)()
    function = reward_function(images="images", strict=True, transport=double.transport)

    for call in (lambda: score([png()], ["0.1"]), lambda: function(["0.1"], images=[png()])):
        with pytest.raises(NoScore, match="warned"):
            call()
    assert pickle.loads(pickle.dumps(Reward(strict=True))).strict
