"""Named outputs of reward models in `Reward`: metrics with weights of their own, from one call."""

import pytest

import scoregate
from scoregate.trainers import Reward
from tests.support.pictures import png

PICTURES = [png(colour) for colour in ("red", "lime", "blue")]
PROMPTS = ["a red square"] * 3
MODELS = """
[models.hpsv3]
family = "fake"

[models.vqa]
family = "fake"

[metrics.hpsv3]
model = "hpsv3"
"""


@pytest.fixture(scope="module")
def gate(tmp_path_factory):
    """A gate around a fake HPSv3."""
    config = tmp_path_factory.mktemp("outputs") / "fake.toml"
    config.write_text(MODELS, "utf-8")
    with scoregate.load(config) as gate:
        yield gate


def test_outputs_are_weighted_as_metrics(gate):
    """A mean less a part of its uncertainty; the parts stay apart, under their names."""
    rewards = Reward(metrics=["hpsv3.mu", "hpsv3.sigma"], weights=[1, -0.5], client=gate)(PICTURES, PROMPTS)
    mu, sigma = rewards.parts["hpsv3.mu"], rewards.parts["hpsv3.sigma"]

    assert [mean - spread / 2 for mean, spread in zip(mu, sigma, strict=True)] == pytest.approx(list(rewards))
    assert list(Reward("hpsv3", client=gate)(PICTURES, PROMPTS)) == mu


def test_outputs_are_routed_by_domain(gate):
    """Each picture has the outputs of its domain alone."""
    domains = {"people": {"hpsv3.mu": 1}, "scenes": {"hpsv3.mu": 1, "vqascore": 2}}
    rewards = Reward(by_domain=domains, client=gate)(
        PICTURES, PROMPTS, domains=["people", "scenes", "people"]
    )

    assert [None, None] == rewards.parts["vqascore"][::2]
    assert rewards.parts["hpsv3.mu"][::2] == rewards[::2]
    assert rewards[1] == rewards.parts["hpsv3.mu"][1] + 2 * rewards.parts["vqascore"][1]


def test_pairs_are_compared_by_an_output(gate):
    """The win rates of a group, whose sum is half its size."""
    rewards = Reward("hpsv3.mu", group_by="prompt", client=gate)(PICTURES, PROMPTS)

    assert 1.5 == pytest.approx(sum(rewards))
    assert sorted(range(3), key=list(rewards).__getitem__) == sorted(
        range(3), key=Reward("hpsv3", client=gate)(PICTURES, PROMPTS).__getitem__
    )
