"""loadtest.watch: the picture of the page on reward hacking, and the noise of its simulations."""

import random
from itertools import islice
from statistics import fmean, pstdev

import pytest

from loadtest.watch import NOISES, drawing


def test_the_picture_says_that_it_is_simulated():
    """And shows the alarm of the hacked run alone."""
    figure = drawing()
    labels = [[text.get_text() for text in axes.get_legend().get_texts()] for axes in figure.axes]

    assert figure.get_suptitle().startswith("Simulated curves")
    assert figure.get_suptitle().endswith("no training run")
    assert ["reward", "watched metric"] == labels[0] == labels[1][:2]
    assert labels[1][2].startswith("alarm at step 2")


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_noise_has_a_deviation_of_one_and_its_autocorrelation(noise):
    """Over many independent runs of two steps."""
    pairs = [tuple(islice(noise.draw(random.Random(seed)), 2)) for seed in range(4000)]

    assert 1 == pytest.approx(pstdev(one for one, _ in pairs), rel=0.05)
    expected = (1 - noise.white) * noise.memory
    assert expected == pytest.approx(fmean(one * other for one, other in pairs), abs=0.06)
