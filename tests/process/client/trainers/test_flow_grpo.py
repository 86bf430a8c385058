"""scoregate.trainers.flow_grpo, called as flow_grpo, DiffusionNFT and ddpo-pytorch call it."""

import random

import numpy as np
import pytest
import torch

from scoregate.errors import NoScoreError
from scoregate.trainers.flow_grpo import NOT_APPLICABLE, factory, t2i_score, t2i_score_eval, t2i_score_logit
from scoregate.trainers.flow_grpo import multi_score as in_one_request
from tests.process.client.trainers.standins import advantages, evaluated, multi_score, rollout
from tests.unit.client.trainers.scripted import refusing


def epoch(prompts: int, group: int, ranks: int, batch: int):
    """Batches of each rank, with every prompt's group shuffled over all ranks; the prompts as gathered."""
    dice, generator = random.Random(0), torch.Generator().manual_seed(0)
    order = [f"a picture of {number}" for number in range(prompts) for _ in range(group)]
    dice.shuffle(order)
    batches = [
        (torch.rand(batch, 3, 16, 16, generator=generator), order[start : start + batch])
        for start in range(0, len(order), batch)
    ]
    each = len(batches) // ranks
    return [batches[rank * each : (rank + 1) * each] for rank in range(ranks)], order


def test_an_epoch_gives_each_sample_an_advantage_within_its_group(here):
    """Groups of 24, scattered over 4 ranks of 8 threads; each sample has the score that it has alone."""
    ranks, prompts = epoch(prompts=12, group=24, ranks=4, batch=9)
    reward = multi_score("cuda", {"vqascore": 1.0}, {"vqascore": t2i_score})
    rewards = rollout(reward, ranks)
    images, first = ranks[2][3]
    alone = t2i_score()(images[4:5], first[4:5], [{}])[0]

    place = (2 * len(ranks[0]) + 3) * 9 + 4
    assert 288 == len(rewards)
    assert torch.tensor(alone) == rewards[place : place + 1]
    values = advantages(rewards, prompts)
    assert torch.isfinite(values).all()
    assert (values != 0).all()


def test_the_scores_are_a_plain_list_and_add_up_with_others(here):
    """`multi_score` multiplies and adds them; the second factory has no device."""

    def constant():
        return lambda images, prompts, metadata: ([1.0] * len(prompts), {})

    both = {"vqascore": t2i_score_logit, "constant": constant}
    images = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    scores, info = t2i_score_logit("cuda")(images, ("a", "b", "c"), [{}] * 3)
    details, _ = multi_score("cuda", {"vqascore": 0.5, "constant": 2.0}, both)(
        images, ("a", "b", "c"), [{}] * 3
    )

    assert [float] * 3 == [type(score) for score in scores]
    assert {"vqascore": scores} == info
    assert [0.5 * score + 2.0 for score in scores] == details["avg"]


def test_the_multi_score_of_the_page_logs_each_metric(here):
    """And `avg`, which it trains with, is their weighted sum; the shape is that of flow_grpo's own."""
    weights = {"vqascore": 0.5, "clipscore": 2.0}
    images = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    own = multi_score("cuda", weights, {name: factory(name) for name in weights})
    ours, info = in_one_request("cuda", weights)(images, ("a", "b", "c"), [{}] * 3, only_strict=True)
    details, _ = own(images, ("a", "b", "c"), [{}] * 3)

    assert details.keys() == ours.keys()
    assert {} == info
    assert all(details[name] == pytest.approx(ours[name]) for name in details)


def test_tensors_and_arrays_are_what_flow_grpo_makes_of_them(here):
    """NCHW floats have the score of the NHWC bytes that its rewards round them to; so has bfloat16."""
    images = (torch.arange(2 * 3 * 8 * 8).reshape(2, 3, 8, 8) % 256) / 255
    rounded = (images * 255).round().clamp(0, 255).to(torch.uint8).cpu().numpy().transpose(0, 2, 3, 1)
    prompts = np.array(["a", "b"])  # its remote rewards split prompts with np.array_split

    assert t2i_score()(images, ["a", "b"], [])[0] == t2i_score()(rounded, prompts, [])[0]


def test_a_sample_without_a_score_ends_the_rank(here):
    """Its training knows no mask: nothing may stand for the score."""
    images = torch.rand(4, 3, 8, 8)
    images[2, 0, 0, 0] = torch.nan

    with pytest.raises(NoScoreError, match=r"1 of 4 pictures have no score; picture 2: bad_image"):
        t2i_score()(images, ["a"] * 4, [])


def test_an_evaluation_leaves_such_a_sample_out(here):
    """By the number that flow_grpo masks."""
    images = torch.rand(4, 3, 8, 8)
    images[2, 0, 0, 0] = torch.nan
    scores, _ = t2i_score_eval()(images, ["a"] * 4, [])

    assert NOT_APPLICABLE == scores[2]
    assert np.mean([scores[0], scores[1], scores[3]]) == pytest.approx(evaluated(scores))


def test_a_service_that_refuses_is_no_number_at_an_evaluation_either(scripted):
    """Or a run without a service would look like one without pictures."""
    _, double = scripted(*[refusing(401, "unauthorized")] * 9)
    score = factory(fill=NOT_APPLICABLE, transport=double.transport)()

    with pytest.raises(NoScoreError, match="unauthorized"):
        score(torch.rand(2, 3, 8, 8), ["0.5"] * 2, [])


def test_pictures_in_another_range_are_a_mistake(here):
    """Diffusion models think in [-1, 1]: clamping would score other pictures."""
    with pytest.raises(ValueError, match=r"floats are in \[0, 1\], not from -"):
        t2i_score()(torch.rand(2, 3, 8, 8) * 2 - 1, ["a", "b"], [])
