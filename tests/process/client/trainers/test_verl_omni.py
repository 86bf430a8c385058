"""scoregate.trainers.verl_omni, called as verl-omni's reward managers call it."""

import asyncio

import pytest
import torch

from scoregate.errors import BadImageError
from scoregate.trainers.reward import Reward
from scoregate.trainers.verl_omni import compute_score
from tests.process.client.trainers.standins import MultiVisualRewardManager


def samples(count: int):
    """Pictures as the trainer has them, each its own, in groups of 16 of a prompt."""
    pictures = torch.randint(
        0, 256, (count, 3, 16, 16), generator=torch.Generator().manual_seed(0), dtype=torch.uint8
    )
    return [(picture, f"a picture of {index // 16}") for index, picture in enumerate(pictures)]


def test_a_step_of_more_samples_than_connections_is_scored(service):
    """As the same pictures are in one batch; the service's address is a key of the configuration."""
    step = samples(160)  # at once, over at most 64 connections
    manager = MultiVisualRewardManager(compute_score, required=True, server_url=service)
    scores = asyncio.run(manager.run(step))
    with_batches = Reward(base_url=service)
    expected = with_batches([picture for picture, _ in step], [prompt for _, prompt in step])
    with_batches.close()

    assert expected == scores


def test_another_event_loop_gets_connections_of_its_own(here):
    """A worker may run one after the other."""
    [(picture, prompt)] = samples(1)

    first, second = (
        asyncio.run(compute_score(solution_image=picture, ground_truth=prompt)) for _ in range(2)
    )
    assert first == second


def test_a_probability_is_a_key_of_the_configuration(service):
    """Beside the weight; log-odds are the default."""
    step = samples(32)
    probability = asyncio.run(
        MultiVisualRewardManager(compute_score, server_url=service, logit=False).run(step)
    )
    logit = asyncio.run(MultiVisualRewardManager(compute_score, server_url=service).run(step))

    assert all(0 < score < 1 for score in probability)
    assert min(logit) < 0 < max(logit)


def test_each_metric_of_a_sum_reaches_the_extra_info(service):
    """As lists and mappings of the configuration name them."""
    [(picture, prompt)] = samples(1)
    given = {"metrics": ["vqascore", "clipscore"], "weights": {"vqascore": 0.5, "clipscore": 2}}
    found = asyncio.run(
        compute_score(solution_image=picture, ground_truth=prompt, server_url=service, **given)
    )

    assert ["score", "vqascore", "clipscore"] == list(found)
    assert 0.5 * found["vqascore"] + 2 * found["clipscore"] == pytest.approx(found["score"])


def test_frames_of_a_video_count_as_their_mean(here):
    """All of them, and not only the first."""
    frames, prompt = torch.stack([picture for picture, _ in samples(3)]), "a picture of 0"
    mean = asyncio.run(compute_score(solution_image=frames, ground_truth=prompt))["score"]
    single = [
        asyncio.run(compute_score(solution_image=frame, ground_truth=prompt))["score"] for frame in frames
    ]

    assert sum(single) / 3 == pytest.approx(mean)


def test_a_sample_without_a_score_raises(service):
    """verl-omni then stops, if the reward is required.  Otherwise it makes a 0 of it: the page warns."""
    picture = torch.rand(3, 8, 8) * torch.nan
    required = MultiVisualRewardManager(compute_score, required=True, server_url=service)

    with pytest.raises(BadImageError, match="NaN"):
        asyncio.run(compute_score(solution_image=picture, ground_truth="a", server_url=service))
    with pytest.raises(RuntimeError, match="Required sub-reward failed"):
        asyncio.run(required.run([(picture, "a")]))
