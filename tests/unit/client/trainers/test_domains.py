"""Rewards by domain, and rewards of which some metrics are not required."""

import httpx2 as httpx
import pytest

from scoregate.errors import NoScoreError
from scoregate.results import ScoregateWarning
from scoregate.trainers.flow_grpo import NOT_APPLICABLE, factory
from scoregate.trainers.reward import Reward
from scoregate.trainers.trl import reward_function
from tests.support.pictures import png
from tests.unit.client.trainers.scripted import Scripted, refusing

DOMAINS = {"text": {"ocr": 1.0}, "counting": {"geneval": 2.0, "vqascore": 0.5}}
SCORES = {"ocr": 0.25, "geneval": 1.0, "vqascore": 4.0, "clipscore": 0.5}
MIXED = {
    "metrics": ["vqascore", "ocr", "clipscore"],
    "weights": [0.5, 1.0, -1.0],
    "required": ["vqascore", "clipscore"],
}


def step(**codes):
    """A step that scores each item by its own metrics; the ones named have the error of that code."""

    def answer(asked, request):
        results = []
        for index, item in enumerate(asked["items"]):
            names = item.get("metrics", asked["metrics"])
            errors = {name: {"code": codes[name], "detail": "as told"} for name in names if name in codes}
            scores = {name: SCORES[name] for name in names if name not in codes}
            results.append({"index": index, "scores": scores, "errors": errors})
        return httpx.Response(200, json={"request_id": "r", "results": results, "models": {}})

    return answer


def test_a_picture_is_scored_by_the_metrics_of_its_domain(scripted):
    """All of them in one request; the parts of others are None."""
    reward, double = scripted(step(), by_domain=DOMAINS)
    rewards = reward([png()] * 3, ["a sign", "two cats", "a sign"], domains=["text", "counting", "text"])

    assert [0.25, 2.0 + 2.0, 0.25] == rewards
    assert {"ocr": [0.25, None, 0.25], "geneval": [None, 1.0, None], "vqascore": [None, 4.0, None]} == (
        rewards.parts
    )
    [asked] = double.requests
    assert [["ocr"], ["geneval", "vqascore"], ["ocr"]] == [item["metrics"] for item in asked["items"]]
    assert {"vqascore": {"output": "logit"}} == asked["options"]


@pytest.mark.parametrize(
    ("domains", "why"),
    [
        (None, "needs the domain of each of 2 pictures"),
        (["text"], "needs the domain of each of 2 pictures"),
        ("ab", "needs the domain of each of 2 pictures"),
        (["text", "style"], "no 'style', but text, counting"),
    ],
)
def test_each_picture_has_a_domain_that_is_known(scripted, domains, why):
    """Before anything is sent."""
    reward, double = scripted(step(), by_domain=DOMAINS)

    with pytest.raises(ValueError, match=why):
        reward([png()] * 2, ["a", "b"], domains=domains)
    assert not double.requests


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"by_domain": DOMAINS, "metrics": ["ocr"]}, "by_domain has the metrics and weights"),
        ({"by_domain": {"text": {}}}, "the domain 'text' has no metric"),
        ({"by_domain": {"text": {"ocr": float("nan")}}}, "the weight of ocr is not finite"),
        ({"by_domain": DOMAINS, "required": ["dsg"]}, "'dsg' is required, and is none of ocr, geneval"),
        ({"required": "dsg"}, "'dsg' is required, and is none of vqascore"),
        ({"metrics": ["a", "b"], "weights": [1, -1], "required": ["a"]}, "'b' has the negative weight -1"),
        ({"by_domain": {"x": {"a": 1}, "y": {"a": -0.5}}, "required": []}, "'a' .* must be in required"),
    ],
)
def test_settings_that_contradict_are_refused(settings, why):
    """Where the reward is made."""
    with pytest.raises(ValueError, match=why):
        Reward(**settings)


def test_domains_belong_to_a_reward_that_has_them(scripted):
    """They would be ignored otherwise."""
    reward, _ = scripted(step())

    with pytest.raises(ValueError, match="the reward has no by_domain"):
        reward([png()], ["a"], domains=["text"])


def test_a_metric_that_is_not_required_is_left_out_and_said_so(scripted):
    """The positive weights that remain are scaled.  The first is a warning, and a figure counts them."""
    reward, _ = scripted(step(ocr="no_text"), **MIXED)
    with pytest.warns(ScoregateWarning, match="a reward without ocr: no_text: as told"):
        rewards = reward([png()] * 2, ["a", "b"])

    assert [0.5 * 4 * 1.5 / 0.5 - 0.5] * 2 == pytest.approx(rewards)
    assert {"vqascore": [4.0, 4.0], "ocr": [None, None], "clipscore": [0.5, 0.5]} == rewards.parts
    assert {"left out: ocr": 2} == reward.warned
    figures = reward.statistics()
    assert 1.0 == figures["scoregate/left_out"]
    assert {"scoregate/vqascore/mean", "scoregate/clipscore/mean"} < figures.keys()
    assert "scoregate/ocr/mean" not in figures


def test_without_a_required_metric_there_is_no_reward(scripted):
    """The error names it; and so it is where only parts without weight are left."""
    reward, _ = scripted(step(vqascore="too_long"), **MIXED)
    with pytest.raises(NoScoreError, match="picture 0: too_long: vqascore: as told"):
        reward([png()], ["a"])

    settings = {"metrics": ["ocr", "clipscore"], "weights": [1.0, 0.0], "required": ["clipscore"]}
    weightless, _ = scripted(step(ocr="no_text"), **settings)
    with pytest.raises(NoScoreError, match="no_text: ocr"):
        weightless([png()], ["a"])


def test_a_part_that_is_away_is_tried_again_and_waited_for_no_longer(scripted):
    """Three times in all; a reward stays if the next attempt fails as a whole."""
    away, then = step(ocr="not_ready"), step()
    reward, double = scripted(away, then, **MIXED)
    with pytest.warns(ScoregateWarning):
        assert [0.5 * 4 + 0.25 - 0.5] == reward([png()], ["a"])
    assert 2 == len(double.requests)

    never, second = scripted(away, away, away, away, **MIXED)
    with pytest.warns(ScoregateWarning):
        parts = never([png()], ["a"]).parts
    assert {"vqascore": [4.0], "ocr": [None], "clipscore": [0.5]} == parts
    assert 3 == len(second.requests)

    wrong = refusing(422, "invalid", "/items/0")
    kept, _ = scripted(away, wrong, wrong, **MIXED)
    with pytest.warns(ScoregateWarning):
        assert [5.5] == pytest.approx(kept([png()], ["a"]))


def test_trl_has_the_domains_in_a_column():
    """Named by the caller."""
    double = Scripted([step(), step()])
    function = reward_function(transport=double.transport, by_domain=DOMAINS, domains="kind")

    assert [0.25] == function(["a sign"], completions=[], pictures=[png()], kind=["text"])
    with pytest.raises(TypeError, match="no column 'kind' with the domains, but completions, pictures"):
        function(["a sign"], completions=[], pictures=[png()])


def test_flow_grpo_has_the_domain_in_the_metadata_of_a_prompt():
    """Its logs take numbers alone, so a part of another domain is the number that it skips."""
    double = Scripted([step()])
    function = factory(transport=double.transport, by_domain=DOMAINS)("cuda")

    rewards, parts = function([png()] * 2, ["a", "b"], [{"domain": "text"}, {"domain": "counting"}])

    assert ([0.25, 4.0], [0.25, NOT_APPLICABLE]) == (rewards, parts["ocr"])
