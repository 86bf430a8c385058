"""The shipped detector on scenes that it was never trained on."""

import pytest

from demo.training.evaluation import CLOSE, counted_right
from demo.training.world import SHAPES
from models.checkpoints.locate import DEMO
from models.families.detector.mask2former import Mask2Former


@pytest.fixture(scope="module")
def detector():
    return Mask2Former(DEMO / "detector", dtype="float32", device="cpu")


def test_it_knows_the_shapes_and_draws_masks(detector):
    assert SHAPES == detector.info.labels
    assert detector.info.masks


@pytest.mark.parametrize(("gap", "least"), [(None, 0.9), (CLOSE, 0.85)], ids=["any", "close"])
def test_it_finds_each_thing_and_nothing_else(detector, gap, least):
    """As surely as GenEval wants it for counts."""
    assert counted_right(detector, 32, gap) >= least
