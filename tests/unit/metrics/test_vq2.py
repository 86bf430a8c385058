"""VQ²: pairs of a question and an answer, each put to the model as one question."""

import pytest

from service.metrics.vq2 import fold


def test_the_score_is_the_mean_of_the_probabilities():
    """Or of ones and zeros, where there are only answers."""
    assert 0.4 == pytest.approx(fold({1: 0.7, 2: 0.1}))
    assert 0.75 == fold({1: 1, 2: 1, 3: 0, 4: 1})
