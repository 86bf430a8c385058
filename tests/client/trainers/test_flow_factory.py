"""scoregate.trainers.flow_factory, found, made and called as Flow-Factory does."""

import importlib
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import PIL.Image
import pytest
import torch

from scoregate.errors import UnknownMetric
from scoregate.trainers.reward import NoScore
from tests.client.trainers.standins import RewardArguments, flow_factory, pointwise_rewards

pytestmark = pytest.mark.integration
PATH = "scoregate.trainers.flow_factory.ScoregateRewardModel"
ACCELERATOR = SimpleNamespace(device=torch.device("cpu"))


@pytest.fixture
def model(monkeypatch, service):
    """What the trainer makes of a reward's YAML: a class, by its dotted path."""
    for name, module in flow_factory().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "scoregate.trainers.flow_factory", raising=False)
    module, _, name = PATH.rpartition(".")
    made = []

    def make(**yaml):
        found = getattr(importlib.import_module(module), name)
        made.append(found(config=RewardArguments(base_url=service, **yaml), accelerator=ACCELERATOR))
        return made[-1]

    yield make
    for each in made:
        each.reward.close()
    monkeypatch.delitem(sys.modules, "scoregate.trainers.flow_factory", raising=False)


def samples(count):
    """PIL images, since the model does not ask for tensors, with fields that nobody asked for."""
    dice = np.random.default_rng(0)
    pixels = dice.integers(0, 256, (count, 16, 16, 3), np.uint8)
    return [
        {"prompt": f"a picture of {index // 24}", "image": PIL.Image.fromarray(one), "metadata": "{}"}
        for index, one in enumerate(pixels)
    ]


def test_a_rank_with_four_workers_gets_a_reward_for_each_sample(model):
    """In batches of 16, the last one shorter; each sample as it is scored alone."""
    reward, rank = model(), samples(40)
    with ThreadPoolExecutor(4) as workers:
        all_of_them = list(workers.map(lambda _: pointwise_rewards(reward, rank), range(4)))

    assert all((each == all_of_them[0]).all() for each in all_of_them)
    assert 40 == len(set(all_of_them[0].tolist()))
    assert pointwise_rewards(reward, rank[17:18]) == all_of_them[0][17]
    assert not reward.use_tensor_inputs
    assert {"prompt", "image"} == set(reward.required_fields)


def test_the_yaml_says_how_to_score(model):
    """Unknown keys of it are the model's."""
    reward = model(logit=True, timeout_s=20, batch_size=8)

    assert pointwise_rewards(reward, samples(32)).min() < 0
    assert (20, "bulk") == (reward.reward.timeout_s, reward.reward.priority)


def test_a_metric_that_is_not_served_ends_the_start(model):
    """And not the first step."""
    with pytest.raises(UnknownMetric, match="no metric 'hpsv9', but clipscore"):
        model(metric="hpsv9")


def test_a_sample_without_a_score_raises(model):
    """Flow-Factory has no mask, and a NaN would spread over the group."""
    broken = samples(3)
    broken[1]["prompt"] = "x" * 4001

    with pytest.raises(NoScore, match="1 of 3 pictures have no score; picture 1: invalid"):
        pointwise_rewards(model(), broken)
