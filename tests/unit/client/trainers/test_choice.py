"""Which picture is the better one: in the direction that the service names for the metric."""

import warnings

import numpy as np
import pytest

from scoregate.errors import NoScoreError
from scoregate.trainers.comfyui.nodes import ScoregateFilter
from scoregate.trainers.diffusers import best_of_n, gate
from tests.support.pictures import png
from tests.unit.client.trainers.scripted import gone, scoring

SCORES = ["0.3", "0.9", "0.1"]


@pytest.fixture
def lower(scripted):
    """A reward of a metric whose lower scores are the better ones."""

    def make(*script, **settings):
        reward, double = scripted(*script, metric="distance", **settings)
        double.metrics = {"distance": {"direction": "lower is better"}}
        return reward

    return make


def test_the_lowest_score_wins_where_lower_is_better(lower, scripted):
    """And the highest one elsewhere."""
    assert 2 == best_of_n([png()] * 3, "x", reward=lower(scoring(*SCORES))).index
    assert 1 == best_of_n([png()] * 3, "x", reward=scripted(scoring(*SCORES))[0]).index


def test_the_gate_lets_low_scores_pass_where_lower_is_better(lower):
    """The threshold itself, too."""
    assert [True, False, True] == gate([png()] * 3, SCORES, 0.3, reward=lower())


def test_equal_scores_keep_their_order(lower):
    """The first of them is the best."""
    assert 0 == best_of_n([png()] * 3, "0.5", reward=lower()).index


@pytest.mark.parametrize(("on_error", "shown"), [("pass", True), ("block", False)])
def test_a_gate_that_does_not_hear_the_direction_is_open_or_closed_as_it_was_told(scripted, on_error, shown):
    """As where there is no score."""
    reward, double = scripted(timeout_s=0.05)
    double.metrics = None  # the service is away when it is asked for them

    assert [shown] * 3 == gate([png()] * 3, SCORES, 0.3, on_error=on_error, reward=reward)
    with pytest.raises(NoScoreError, match="connection refused"):
        gate([png()] * 3, SCORES, 0.3, reward=reward)


def test_nobody_asks_for_a_direction_without_a_score(lower):
    """The service is away already."""
    reward = lower(*[gone] * 100_000, timeout_s=0.05)

    assert [False] == gate([png()], "0.5", 0.3, on_error="block", reward=reward)
    assert reward._lower is None


def test_a_trainer_is_warned_of_a_metric_whose_lower_scores_are_better(lower):
    """It seeks high rewards: at the start, where it checks the metric."""
    with pytest.warns(UserWarning, match="lower scores of distance are better"):
        lower().check()


@pytest.mark.parametrize(
    ("reads", "settings", "said"),
    [
        ((False, False), {}, "distance, clip_i read no prompt: pictures of any content can get this reward"),
        ((False, True), {}, ""),
        ((True, True), {}, ""),
        (
            (False, True),
            {"by_domain": {"a": {"clip_i": 1}, "b": {"distance": 1}}},
            "distance read no prompt in the domain b: ",
        ),
    ],
)
def test_a_trainer_is_warned_of_a_reward_whose_metrics_all_read_no_prompt(scripted, reads, settings, said):
    """Training by it makes a generator forget prompts; one that reads them is enough, by domain."""
    reward, double = scripted(**(settings or {"metrics": ["distance", "clip_i"]}))
    double.metrics = {
        name: {"direction": "higher is better", "reads_prompt": read}
        for name, read in zip(("distance", "clip_i"), reads, strict=True)
    }

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        reward.check()

    assert [said] * bool(said) == [str(each.message)[: len(said)] for each in caught]


def test_the_node_for_comfyui_orders_in_the_direction_of_the_metric(lower):
    """And lets low scores pass."""
    reward = lower(scoring(*SCORES, None))

    class Filter(ScoregateFilter):
        def scorer(self, metric, url):
            return reward

    images = np.stack([np.full((8, 8, 3), shade) for shade in (0.0, 0.25, 0.5, 0.75)])
    passed, scores, _ = Filter().filter(images, "x", "distance", 0.3, 4, "block")

    assert ([0.5, 0.0], [0.1, 0.3]) == (passed[:, 0, 0, 0].tolist(), scores)
