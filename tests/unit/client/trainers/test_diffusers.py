"""scoregate.trainers.diffusers: pictures with and without a score."""

import PIL.Image
import pytest

from scoregate.errors import NoScoreError
from scoregate.trainers.diffusers import best_of_n, gate
from tests.support.pictures import png
from tests.unit.client.trainers.scripted import failing, gone


def test_a_picture_without_a_score_cannot_win(scripted):
    """Unless none has one."""
    reward, _ = scripted()
    best = best_of_n([png(), b"broken"], "0.7", reward=reward)

    assert (0, 0.7) == (best.index, best.score)
    with pytest.raises(NoScoreError):
        best_of_n([PIL.Image.new("RGB", (0, 0))], "0.7", reward=reward)


def test_the_gate_lets_pass_what_reaches_the_threshold(scripted):
    """Each prompt of a pipeline has its pictures one after the other; people do not wait behind training."""
    reward, double = scripted(priority="interactive")

    assert [True, True, False, False] == gate([png()] * 4, ["0.7", "0.3"], 0.7, reward=reward)
    assert ["interactive"] == [asked["priority"] for asked in double.requests]


@pytest.mark.parametrize(("on_error", "shown"), [("pass", True), ("block", False)])
def test_the_gate_fails_open_or_closed_as_it_was_told(scripted, on_error, shown):
    """For one picture, and where the service is away."""
    reward, _ = scripted(failing(**{"0.7": "image_undecodable"}))
    away, _ = scripted(*[gone] * 100_000, timeout_s=0.1)

    assert [True, shown] == gate([png()] * 2, ["0.9", "0.7"], 0.8, on_error=on_error, reward=reward)
    assert [shown] == gate([png()], "0.9", 0.8, on_error=on_error, reward=away)


def test_the_gate_raises_unless_it_was_told_what_to_do(scripted):
    """No default decides what users see."""
    reward, _ = scripted(failing(**{"0.7": "image_undecodable"}))

    with pytest.raises(NoScoreError, match="1 of 2"):
        gate([png()] * 2, ["0.9", "0.7"], 0.8, reward=reward)
    with pytest.raises(ValueError, match="on_error is one of raise, pass, block"):
        gate([png()], "0.9", 0.8, on_error="open", reward=reward)


def test_pictures_that_no_prompt_accounts_for_are_a_mistake(scripted):
    """Three pictures of two prompts."""
    reward, _ = scripted()

    with pytest.raises(ValueError, match="3 pictures cannot be shared evenly by 2 prompts"):
        gate([png()] * 3, ["0.1", "0.2"], 0.5, reward=reward)
