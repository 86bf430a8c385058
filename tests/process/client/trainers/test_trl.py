"""scoregate.trainers.trl, called as TRL calls a reward function."""

import numpy as np
import pytest
import torch

from scoregate.errors import NoScoreError
from scoregate.trainers.reward import Reward
from scoregate.trainers.trl import reward_function
from tests.process.client.trainers.standins import trl_advantages, trl_rewards

PICTURES = list(torch.rand(6, 3, 8, 8, generator=torch.Generator().manual_seed(0)))


def inputs(pictures, prompt="a red square"):
    """Rows of a data set whose column `pictures` holds what was drawn."""
    return [{"prompt": prompt, "pictures": picture} for picture in pictures]


def test_pictures_of_a_column_are_scored_with_their_prompts(here):
    """The function's name is the metric's, for the logs."""
    function = reward_function("clipscore")
    direct = Reward("clipscore")(PICTURES, ["a red square"] * 6)

    assert torch.tensor(direct).tolist() == trl_rewards([function], inputs(PICTURES), [""] * 6).tolist()
    assert "clipscore" == function.__name__


def test_pictures_may_be_the_completions_and_prompts_conversations(here):
    """What the user said last is the prompt."""
    function = reward_function(images="completions")
    parts = [{"type": "text", "text": "a red square"}]
    turns = [
        [{"role": "system", "content": "draw"}, {"role": "user", "content": said}]
        for said in ("a red square", parts)
    ]
    rows = [{"prompt": turn} for turn in turns]
    first, second = trl_rewards([function], rows, [PICTURES[0]] * 2)

    assert first == second == torch.tensor(Reward()([PICTURES[0]], ["a red square"]))[0]


def test_the_column_images_is_trl_s_own(here):
    """What the model is shown; and a column that is not there is named."""
    rows = [{"prompt": "a red square", "images": picture} for picture in PICTURES]

    with pytest.raises(ValueError, match="conversational prompts"):
        trl_rewards([reward_function(images="images")], rows, [""] * 6)
    with pytest.raises(TypeError, match="no column 'pictures' with the pictures, but completions, images"):
        reward_function()(prompts=["a"], completions=[""], images=PICTURES[:1])


def test_a_picture_without_a_score_raises(here):
    """Unless a mask was asked for: then TRL leaves its row out of the group."""
    broken = [*PICTURES, torch.full((3, 8, 8), torch.nan)]

    with pytest.raises(NoScoreError):
        trl_rewards([reward_function()], inputs(broken), [""] * 7)
    masked = trl_rewards([reward_function(mask=True)], inputs(broken), [""] * 7)
    alone = trl_advantages(masked[:6])
    assert [*alone.tolist(), 0.0] == trl_advantages(masked).tolist()
    assert alone.abs().min() > 0


def test_a_trainer_with_a_mask_gets_none(here):
    """On request."""
    broken = [np.zeros((8, 8, 3), np.uint8), b"no picture"]
    scores = reward_function(mask=True)(prompts=["a", "a"], completions=[], pictures=broken)

    assert [float, type(None)] == [type(score) for score in scores]
