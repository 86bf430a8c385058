"""Rewards of several metrics: one request, their weighted sum, and each part."""

import json
import pickle
from fractions import Fraction

import httpx2 as httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoregate.errors import NoScoreError, ScoregateError
from scoregate.results import Result
from scoregate.trainers.outcomes import WeightedSum
from scoregate.trainers.reward import Reward
from scoregate.trainers.trl import reward_function
from tests.support.pictures import png
from tests.unit.client.trainers.scripted import Scripted, scored

BOTH = {"metrics": ["vqascore", "dsg"], "weights": {"dsg": -2.0, "vqascore": 0.5}}


def both(asked, request):
    """A step that scores an item by `vqascore` as its prompt says, and by `dsg` with 1."""
    content = json.loads(scored(asked, request).content)
    for result in content["results"]:
        result["scores"] = {"vqascore": result["scores"]["vqascore"], "dsg": 1.0}
    return httpx.Response(200, json=content)


def without_dsg(asked, request):
    """A step in which no item has a score by `dsg`."""
    content = json.loads(both(asked, request).content)
    for result in content["results"]:
        del result["scores"]["dsg"]
        result["errors"] = {"dsg": {"code": "no_questions", "detail": "as told"}}
    return httpx.Response(200, json=content)


def test_a_reward_is_the_weighted_sum_and_has_its_parts(scripted):
    """Of one request, in the order of the pictures; the parts are without weights."""
    reward, double = scripted(both, **BOTH)
    rewards = reward([png()] * 2, ["0.2", "0.4"])

    assert [0.1 - 2, 0.2 - 2] == rewards
    assert {"vqascore": [0.2, 0.4], "dsg": [1.0, 1.0]} == rewards.parts
    assert [["vqascore", "dsg"]] == [asked["metrics"] for asked in double.requests]


def test_each_outcome_has_its_parts_and_can_be_pickled(scripted):
    """Trainers gather them from other processes."""
    reward, _ = scripted(both, **BOTH)
    [outcome] = pickle.loads(pickle.dumps(reward.outcomes([png()], ["0.2"])))

    assert (0.1 - 2, {"vqascore": 0.2, "dsg": 1.0}) == (outcome, outcome.parts)


def test_a_sum_without_one_of_its_parts_is_no_reward(scripted):
    """The error names the metric."""
    reward, _ = scripted(without_dsg, **BOTH)

    with pytest.raises(NoScoreError, match="picture 0: no_questions: dsg: as told"):
        reward([png()], ["0.2"])


def test_what_stands_for_a_bad_picture_stands_for_its_parts(scripted):
    """So that every list has a number for each picture."""
    reward, _ = scripted(both, **BOTH)
    rewards = reward([b"", png()], ["0.2", "0.4"], fill=-10.0)

    assert [-10.0, 0.2 - 2] == rewards
    assert {"vqascore": [-10.0, 0.4], "dsg": [-10.0, 1.0]} == rewards.parts


def test_options_are_by_metric_and_log_odds_are_of_vqascore_alone(scripted):
    """An option of one's own is stronger."""
    reward, double = scripted(both, both, options={"dsg": {"style": "x"}}, **BOTH)
    other, second = scripted(options={"output": "probability"})
    reward([png()], ["0.2"])
    other([png()], ["0.2"])

    assert {"vqascore": {"output": "logit"}, "dsg": {"style": "x"}} == double.requests[0]["options"]
    assert {"vqascore": {"output": "probability"}} == second.requests[0]["options"]


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1.0], "a weight for each of vqascore, dsg"),
        ([1.0, 1.0, 1.0], "a weight for each"),
        ({"vqascore": 1.0, "dgs": 1.0}, "a weight for each"),
        ([1.0, float("nan")], "the weight of dsg is not finite"),
    ],
)
def test_weights_that_fit_no_metrics_are_a_mistake(weights, said):
    """At once, and not at the first step."""
    with pytest.raises(ValueError, match=said):
        Reward(metrics=["vqascore", "dsg"], weights=weights)


def test_a_sum_is_to_be_high_and_a_negative_weight_turns_a_metric(scripted):
    """A trainer is warned of a metric that it would seek the bad pictures of."""
    turned, double = scripted(metric="distance", weights=[-1.0])
    double.metrics = {"distance": {"direction": "lower is better"}}

    assert not turned.lower_is_better()
    assert {"distance"} == turned.check().keys()  # a warning would fail


def test_trl_logs_each_part():
    """A column of the completions, and its mean; the name of the function is that of its metrics."""
    double, columns, figures = Scripted([both]), {}, {}
    function = reward_function(transport=double.transport, **BOTH)
    given = {"log_extra": columns.__setitem__, "log_metric": figures.__setitem__}

    assert [0.1 - 2, 0.2 - 2] == function(["0.2", "0.4"], completions=[], pictures=[png()] * 2, **given)
    assert {"vqascore": [0.2, 0.4], "dsg": [1.0, 1.0]} == columns
    assert pytest.approx(0.3) == figures["scoregate/vqascore/mean"]
    assert "vqascore+dsg" == function.__name__


def test_a_sum_that_is_no_number_is_an_error():
    """Weights that overflow."""
    result = Result(0, None, {"a": 1e300}, {}, {}, {}, "r")

    assert "the weighted sum is not finite" == WeightedSum({"a": 1e300}, "a").of(result).detail


def test_the_least_weight_takes_the_place_of_a_missing_score():
    """Its share of the positive weights is 1, however small it is."""
    result = Result(0, None, {"small": 0.25}, {"large": ScoregateError("away")}, {}, {}, "r")

    assert 0.5 == WeightedSum({"large": 2.0, "small": 5e-324}, {"small"}).of(result)


PARTS = st.lists(st.tuples(st.floats(-4, 4), st.floats(0, 1), st.booleans()), min_size=1, max_size=6)


@given(PARTS, st.floats(0, 1))
def test_a_missing_score_counts_as_the_weighted_mean_of_the_positive_weights(parts, score):
    """For any weights: with the mean of the others in its place, the whole sum is that reward."""
    weights = {f"m{number}": weight for number, (weight, _, _) in enumerate(parts)}
    scores = {f"m{number}": score for number, (_, score, _) in enumerate(parts)}
    absent = {f"m{number}" for number, (weight, _, away) in enumerate(parts) if away and weight >= 0}
    wanted = WeightedSum(weights, weights.keys() - absent)
    result = Result(0, None, {name: scores[name] for name in scores.keys() - absent}, {}, {}, {}, "r")
    result.errors.update({name: ScoregateError("away") for name in absent})
    outcome = wanted.of(result)

    remaining = {name: weight for name, weight in weights.items() if weight > 0 and name not in absent}
    if absent and not remaining:
        assert isinstance(outcome, ScoregateError)
        return
    of_all = sum(map(Fraction, remaining.values())) or 1  # exact: a product of the least floats is 0
    mean = float(
        sum(Fraction(weight) * Fraction(scores[name]) for name, weight in remaining.items()) / of_all
    )
    filled = {name: mean if name in absent else scores[name] for name in weights}
    assert outcome == pytest.approx(sum(weights[name] * filled[name] for name in weights), abs=1e-9)
    assert absent == outcome.left_out.keys()


@given(st.floats(-4, -1e-6), st.floats(0, 4))
def test_a_missing_penalty_is_never_a_higher_reward(penalty, weight):
    """It is required, in whatever way the sum is made, and the message names it."""
    with pytest.raises(ValueError, match=r"'ocr' has the negative weight .* must be in required"):
        WeightedSum({"vqascore": weight, "ocr": penalty}, {"vqascore"})
    errors = {"ocr": ScoregateError("away")}
    result = Result(0, None, {"vqascore": 0.8}, errors, {}, {}, "r")

    assert "ocr: away" == WeightedSum({"vqascore": weight, "ocr": penalty}, {"ocr"}).of(result).detail
