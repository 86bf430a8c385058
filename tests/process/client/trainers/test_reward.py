"""scoregate.trainers.reward: a score or an error for each picture, whatever happens on the way."""

import multiprocessing
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import PIL.Image
import pytest
import torch

from scoregate import errors
from scoregate.trainers.reward import Reward
from tests.support.pictures import png

PICTURE = png()


def test_one_corrupt_picture_in_128_harms_no_other(service):
    """Truncated, NaN, or with a prompt that is none: the others have the scores they have alone."""
    reward = Reward(base_url=service)
    whole = [np.full((16, 16, 3), shade, np.uint8) for shade in range(128)]
    prompts = ["a grey square"] * 128
    expected = reward(whole, prompts)
    images = list(whole)
    images[5], images[60] = png()[:50], np.full((16, 16, 3), np.nan)
    prompts[90], prompts[91] = " ", "x" * 4001
    outcomes = reward.outcomes(images, prompts)
    reward.close()

    codes = {index: one.code for index, one in enumerate(outcomes) if isinstance(one, errors.ScoregateError)}
    assert {5: "image_undecodable", 60: "bad_image", 90: "invalid", 91: "invalid"} == codes
    assert len(set(expected)) == 128
    assert all(one == expected[index] for index, one in enumerate(outcomes) if index not in codes)


def test_the_same_pixels_have_the_same_score_in_every_form(service):
    """Tensor, array, PIL: no encoding changes what the model sees."""
    pixels = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    tensor = torch.from_numpy(pixels).permute(2, 0, 1)
    forms = [pixels, tensor, tensor.float() / 255, PIL.Image.fromarray(pixels)]
    reward = Reward(base_url=service)
    scores = reward(forms, ["noise"] * 4)
    reward.close()

    assert 1 == len(set(scores))


def test_a_probability_comes_on_request(service):
    """Log-odds are the default."""
    probability, logit = Reward(logit=False, base_url=service), Reward(base_url=service)
    images = [np.full((16, 16, 3), shade, np.uint8) for shade in range(8)]
    inside, outside = probability(images, ["a"] * 8), logit(images, ["a"] * 8)
    probability.close()
    logit.close()

    assert all(0 < one < 1 for one in inside)
    assert min(outside) < 0 < max(outside)


@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_another_process_opens_connections_of_its_own(service, kind):
    """Those of the parent go on working."""
    reward = Reward(base_url=service)
    before = reward([PICTURE], ["a"])
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(kind)) as pool:
        scores = list(pool.map(reward, [[PICTURE]] * 4, [["a"]] * 4))
    after = reward([PICTURE], ["a"])
    reward.close()

    assert [before] * 4 == scores
    assert before == after


def test_importing_the_adapters_starts_and_loads_nothing():
    """No thread, no torch, no NumPy, no Pillow: a trainer forks afterwards."""
    names = "flow_grpo verl_omni trl diffusers comfyui"
    code = (
        "import sys, threading, importlib\n"
        f"for name in {names.split()}: importlib.import_module('scoregate.trainers.' + name)\n"
        "print(threading.active_count(), sorted({'torch', 'numpy', 'PIL'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert "1 []\n" == shown
