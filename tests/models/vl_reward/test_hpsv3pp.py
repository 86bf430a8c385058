"""HPSv3++: a picture is judged at a step of a training."""

from models.core.calls import ProgressCall
from tests.models.contract.qwens import FIRST
from tests.support.vl_checkpoints import outputs


def test_the_progress_is_part_of_the_key(models):
    """Calls that differ in it alone have other outputs, and other places in a cache."""
    first, last = (ProgressCall(FIRST, "a cat", progress) for progress in (0.0, 1.0))

    assert first.key(()) != last.key(())
    assert outputs(models("hpsv3pp"), first) != outputs(models("hpsv3pp"), last)
