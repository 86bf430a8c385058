"""scoregate.trainers.flow_factory, found, made and called as Flow-Factory does."""

import importlib
import inspect
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch

from scoregate.errors import NoScoreError, UnknownMetricError
from scoregate.trainers.reward import Reward
from tests.process.client.trainers.standins import (
    GroupwiseRewardModel,
    RewardArguments,
    flow_factory,
    pointwise_rewards,
)
from tests.unit.client.trainers.conftest import settle

PATH = "scoregate.trainers.flow_factory.ScoregateRewardModel"
GROUPS = "ScoregateGroupRewardModel"
ACCELERATOR = SimpleNamespace(device=torch.device("cpu"))


@pytest.fixture
def model(monkeypatch, service):
    """What the trainer makes of a reward's YAML: a class, by its dotted path."""
    for name, module in flow_factory().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "scoregate.trainers.flow_factory", raising=False)
    module, _, name = PATH.rpartition(".")
    made = []

    def make(name=name, **yaml):
        found = getattr(importlib.import_module(module), name)
        made.append(found(config=RewardArguments(base_url=service, **yaml), accelerator=ACCELERATOR))
        return made[-1]

    yield make
    for each in made:
        each.reward.close()
    monkeypatch.delitem(sys.modules, "scoregate.trainers.flow_factory", raising=False)


def samples(count):
    """Tensors of CHW, as the trainer's samples hold them, with fields that nobody asked for."""
    images = torch.rand(count, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    return [
        {"prompt": f"a picture of {index // 24}", "image": one, "metadata": "{}"}
        for index, one in enumerate(images)
    ]


def test_a_rank_with_four_workers_gets_a_reward_for_each_sample(model):
    """In batches of 16, the last one shorter; each sample as it is scored alone."""
    reward, rank = model(), samples(40)
    with ThreadPoolExecutor(4) as workers:
        all_of_them = list(workers.map(lambda _: pointwise_rewards(reward, rank), range(4)))

    assert all((each == all_of_them[0]).all() for each in all_of_them)
    assert 40 == len(set(all_of_them[0].tolist()))
    assert pointwise_rewards(reward, rank[17:18]) == all_of_them[0][17]
    assert {"prompt", "image"} == set(reward.required_fields)


def test_the_yaml_says_how_to_score(model):
    """Unknown keys of it are the model's, and the trainer's `batch_size` is that of a request."""
    reward = model(logit=True, timeout_s=20, batch_size=8, priority="interactive")

    assert pointwise_rewards(reward, samples(32)).min() < 0
    given = reward.reward
    assert (20, "interactive", 8) == (given.timeout_s, given.priority, given.batch_size)


def test_every_setting_but_the_key_may_stand_in_the_yaml(model):
    """Those of `Reward`; the trainer logs its YAML."""
    given = {"metric": "clipscore", "options": {"scale": "raw"}, "timeout_s": 20, "priority": "interactive"}
    made = model(**given, api_key="of the YAML")
    taken = set(sys.modules["scoregate.trainers.flow_factory"].SETTINGS)

    assert taken == set(inspect.signature(Reward).parameters) - {"api_key", "transport", "gather"}
    assert all(getattr(made.reward, name) == value for name, value in given.items())
    assert made.reward.api_key is None


def test_a_group_gets_the_win_rates_of_its_samples(model, client):
    """The trainer passes one group in each call; they sum to half its samples."""
    reward, group = model(GROUPS, metric="clipscore"), [{**each, "prompt": "a cat"} for each in samples(6)]
    output = reward(prompt=[each["prompt"] for each in group], image=[each["image"] for each in group])
    pictures = [(each["image"] * 255).round().byte().movedim(0, -1).numpy() for each in group]

    assert isinstance(reward, GroupwiseRewardModel)
    assert client.compare("a cat", pictures, metric="clipscore").win_rates == output.rewards
    assert 3 == sum(output.rewards)
    assert {"clipscore": output.rewards} == output.extra_info


def test_a_metric_that_is_not_served_ends_the_start(model):
    """And not the first step."""
    with pytest.raises(UnknownMetricError, match="no metric 'hpsv9', but checklist, clip_i, clipscore"):
        model(metric="hpsv9")


def test_a_sample_without_a_score_raises(model):
    """Flow-Factory has no mask, and a NaN would spread over the group."""
    broken = samples(3)
    broken[1]["prompt"] = "x" * 4001

    with pytest.raises(NoScoreError, match="1 of 3 pictures have no score; picture 1: invalid"):
        pointwise_rewards(model(), broken)


def test_a_picture_with_a_nan_spoils_no_other(model):
    """For PIL the trainer guesses one range for the whole batch, and a NaN hides that it is [0, 1]."""
    reward, broken = model(), samples(10)
    broken[2]["image"][0, 0, 0] = torch.nan

    with pytest.raises(NoScoreError, match="1 of 10 pictures have no score; picture 2: bad_image"):
        pointwise_rewards(reward, broken)
    outcomes = reward.reward.outcomes([each["image"] for each in broken], [each["prompt"] for each in broken])
    assert pointwise_rewards(reward, samples(10))[3:] == pytest.approx(torch.tensor(outcomes[3:]))


def edited(count, conditions):
    """Samples of image-to-image, each with as many pictures that it was made from."""
    dice = torch.Generator().manual_seed(1)
    beside = [[torch.rand(3, 8, 8 + n, generator=dice) for n in range(conditions)] for _ in range(count)]
    return [{**sample, "condition_images": each} for sample, each in zip(samples(count), beside, strict=True)]


def test_condition_images_are_references_where_the_metric_looks_at_them(model):
    """Each sample's own."""
    reward = model(metric="judge", options={"rubric": "anchored_style"})
    both, swapped = edited(2, 2), edited(2, 2)
    swapped[1]["condition_images"] = swapped[0]["condition_images"]
    first, second = pointwise_rewards(reward, both), pointwise_rewards(reward, swapped)

    assert first[0] == second[0]
    assert first[1] != second[1]


def test_condition_images_are_refused_where_nobody_looks_at_them(model):
    """A score of the picture alone would not be what was asked for."""
    with pytest.raises(ValueError, match="condition_images, and vqascore does not use references"):
        pointwise_rewards(model(), edited(2, 1))
    with pytest.raises(NoScoreError, match="references"):
        pointwise_rewards(model(metric="judge"), edited(2, 1))
    assert 2 == len(pointwise_rewards(model(), edited(2, 0)))


def test_the_watch_of_a_yaml_logs_its_figures(model, caplog):
    """A mapping, which ends its steps by itself; the rewards are those without it."""
    rank = samples(20)
    plain = pointwise_rewards(model(), rank)
    watched = model(watch={"metrics": ["clipscore"], "every": 20})
    with caplog.at_level(logging.INFO, "scoregate.watch"):
        assert (plain == pointwise_rewards(watched, rank)).all()
        settle(watched.reward)

    assert "step 0: scoregate/watch/reward " in caplog.text
    assert "scoregate/watch/clipscore/mean " in caplog.text
