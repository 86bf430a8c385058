"""scoregate.trainers.reward: a score or an error for each picture, whatever happens on the way."""

import pickle

import numpy as np
import pytest

from scoregate import errors
from scoregate.client import closed_meanwhile
from scoregate.errors import NoScoreError
from scoregate.trainers.images import MAX_BYTES
from scoregate.trainers.reward import Reward
from scoregate.trainers.sending import passing
from tests.support.pictures import png
from tests.unit.client.trainers.scripted import at_most, failing, gone, paged, refusing

PICTURE = png()


def numbers(count):
    """Prompts that say which score they get."""
    return [f"{index / 1000 + 0.001}" for index in range(count)]


def test_each_picture_gets_the_score_of_its_own_prompt(scripted):
    """In order, over several requests in the bulk lane."""
    reward, double = scripted(batch_size=3)
    prompts = numbers(8)

    assert [float(prompt) for prompt in prompts] == reward([PICTURE] * 8, prompts)
    assert [2, 3, 3] == sorted(len(asked["items"]) for asked in double.requests)
    assert {"bulk"} == {asked["priority"] for asked in double.requests}


def test_no_request_holds_more_bytes_than_the_service_takes(scripted):
    """A picture that is larger by itself goes alone."""
    reward, double = scripted()
    third, whole = (np.zeros((side, 1000, 3), np.uint8) for side in (1800, 5600))  # 5.4 MB, and 16.8 MB

    reward([*[third] * 6, whole], numbers(7))

    assert [1, 3, 3] == sorted(len(asked["items"]) for asked in double.requests)
    assert sorted(double.sizes)[1] < MAX_BYTES < max(double.sizes)


def test_a_request_that_is_too_large_for_this_service_is_halved(scripted):
    """Until it fits, whatever limits were set."""
    reward, double = scripted(*[at_most(3)] * 99)
    prompts = numbers(20)

    assert [float(prompt) for prompt in prompts] == reward([PICTURE] * 20, prompts)
    assert 20 == max(len(asked["items"]) for asked in double.requests)


def test_a_refusal_that_names_an_item_costs_only_that_one(scripted):
    """The others are scored."""

    def strict(asked, request):
        bad = [f"/items/{i}/prompt" for i, item in enumerate(asked["items"]) if item["prompt"] == "-1"]
        return (refusing(422, "invalid", *bad) if bad else failing())(asked, request)

    reward, _ = scripted(*[strict] * 99)
    prompts = numbers(9)
    prompts[5] = "-1"
    outcomes = reward.outcomes([PICTURE] * 9, prompts)

    assert isinstance(outcomes.pop(5), errors.InvalidError)
    assert [float(prompt) for prompt in prompts if prompt != "-1"] == outcomes


def test_a_wrong_metric_is_told_at_once(scripted):
    """Halving helps nobody."""
    reward, double = scripted(refusing(422, "unknown_metric", "/metrics/0"))

    with pytest.raises(NoScoreError, match="unknown_metric"):
        reward([PICTURE] * 9, numbers(9))
    assert 1 == len(double.requests)


def test_a_busy_service_is_asked_again(scripted):
    """429 with Retry-After, then a score."""
    reward, double = scripted(*[refusing(429, "lane_full", Retry_After="0")] * 7)

    assert [0.001] == reward([PICTURE], ["0.001"])
    assert 8 == len(double.requests)


def test_training_outlives_a_restart_of_the_service(scripted):
    """Nobody listens for a while, then somebody drains, then there are scores."""
    reward, _ = scripted(*[gone] * 20, refusing(503, "draining", Retry_After="0"))

    assert [0.001] == reward([PICTURE], ["0.001"])


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_proxy_s_page_is_waited_out(scripted, status):
    """It is no answer of the service's; more of them come than one attempt of the client asks for."""
    reward, double = scripted(*[paged(status)] * 40)

    assert [0.001] == reward([PICTURE], ["0.001"])
    assert 41 == len(double.requests)


def test_a_service_that_stays_away_is_an_error_and_no_score(scripted):
    """Within the call's time."""
    reward, _ = scripted(*[gone] * 100_000, timeout_s=0.3)

    with pytest.raises(NoScoreError, match="2 of 2 pictures have no score; picture 0: connection_failed"):
        reward([PICTURE] * 2, numbers(2), fill=-10.0)


def test_nothing_is_tried_again_by_a_client_that_was_closed():
    """It stays closed, unlike a service that is away."""
    away = errors.ServiceConnectionError("connection refused")

    assert [] == passing(closed_meanwhile(), 1)
    assert [away] == passing(away, 1)


def test_only_what_met_a_passing_fault_is_asked_for_again(scripted):
    """The rest has its score already."""
    reward, double = scripted(failing(**{"0.002": "overloaded"}))
    prompts = numbers(3)

    assert [0.001, 0.002, 0.003] == reward([PICTURE] * 3, prompts)
    assert [3, 1] == [len(asked["items"]) for asked in double.requests]


def test_what_a_model_fails_on_is_tried_three_times(scripted):
    """Then it is that picture's error."""
    reward, double = scripted(*[failing(**{"0.002": "model_fault"})] * 9)

    with pytest.raises(NoScoreError, match="1 of 2 pictures have no score; picture 1: model_fault") as caught:
        reward([PICTURE] * 2, numbers(2))
    assert {1: "model_fault"} == {index: error.code for index, error in caught.value.missing.items()}
    assert 3 == len(double.requests)


WHOLE = {
    "a metric that is not served": refusing(422, "unknown_metric", "/metrics/0"),
    "a misspelt option": refusing(422, "invalid", "/options/vqascore/outptu"),
    "an item and an option": refusing(422, "invalid", "/items/0/prompt", "/options/vqascore/outptu"),
    "a refusal without places": refusing(422, "invalid"),
    "too many items": refusing(422, "invalid", "/items"),
    "no key": refusing(401, "unauthorized"),
    "another address": refusing(404, "not_found"),
    "another method": refusing(405, "method_not_allowed"),
    "another type of content": refusing(415, "unsupported_media_type"),
}


@pytest.mark.parametrize("refusal", WHOLE.values(), ids=WHOLE)
def test_nothing_stands_for_a_request_that_is_wrong_as_a_whole(scripted, refusal):
    """It would look like a batch of bad pictures, step after step."""
    reward, _ = scripted(*[refusal] * 9)

    with pytest.raises(NoScoreError, match="3 of 3 pictures have no score"):
        reward([PICTURE] * 3, numbers(3), fill=-10.0)


def test_what_stands_for_a_bad_picture_stands_for_a_bad_prompt_too(scripted):
    """A refusal that names nothing but items, and a picture that the client cannot read."""
    reward, _ = scripted(*[refusing(422, "invalid", "/items/0/prompt")] * 3)

    assert [-10.0, -10.0] == reward([b"", PICTURE], numbers(2), fill=-10.0)


def test_what_stands_for_a_bad_picture_never_stands_for_a_fault_of_the_service(scripted):
    """Only the first is the sample's own fault."""
    reward, _ = scripted(failing(**{"0.001": "image_undecodable"}))
    broken, _ = scripted(*[failing(**{"0.001": "internal"})] * 9)

    assert [-10.0, 0.002] == reward([PICTURE] * 2, numbers(2), fill=-10.0)
    with pytest.raises(NoScoreError, match="internal"):
        broken([PICTURE] * 2, numbers(2), fill=-10.0)


@pytest.mark.parametrize("prompts", [["a"], "ab", ["a", None]], ids=["too few", "one text", "no text"])
def test_prompts_that_fit_no_pictures_are_a_mistake_of_the_trainer(scripted, prompts):
    """Before anything is sent."""
    reward, double = scripted()

    with pytest.raises((ValueError, TypeError), match="prompt"):
        reward([PICTURE] * 2, prompts)
    assert [] == double.requests


def test_a_key_is_in_no_representation(scripted):
    """Trainers log their settings."""
    reward = Reward(api_key="secret")

    assert "secret" not in repr(reward)
    assert "secret" == pickle.loads(pickle.dumps(reward)).api_key
