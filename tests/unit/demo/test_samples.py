"""The shipped pictures and prompts."""

import numpy as np
import PIL.Image
import pytest

from demo.draw_samples import SAMPLES, described
from demo.samples import FOLDER, listed
from demo.training.world import draw
from service.metrics.objects.checks import verdict
from service.metrics.objects.detections import DetectedObject, by_class
from service.metrics.objects.tasks import Task


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.file)
def test_a_sample_shows_its_scene_and_its_prompts_are_right_and_wrong(sample):
    """The shipped picture is the scene as drawn, bar JPEG's noise; truth is the language's own."""
    assert sample.right.true_in(sample.scene) is True
    assert sample.wrong.true_in(sample.scene) is False
    with PIL.Image.open(FOLDER / sample.file) as shipped:
        drawn = draw(sample.scene, sample.longer_side)
        assert drawn.size == shipped.size
        assert np.abs(np.asarray(drawn, float) - np.asarray(shipped, float)).mean() < 2


def test_the_shipped_prompts_are_those_of_the_scenes():
    """`prompts.json` names every picture with both prompts and their metadata; there are at least ten."""
    assert [*map(described, SAMPLES)] == listed()
    assert 10 <= len(SAMPLES)


def test_genevals_verdict_on_the_things_of_a_sample_is_that_of_the_statement():
    """Where it has words for it: seven samples.  It counts squares of any colour, so one is beyond it."""
    told = {sample["file"]: sample["geneval"] for sample in listed() if sample["geneval"]}
    beyond = {"count-by-colour.jpg"}

    assert 7 == len(told)
    for sample in SAMPLES:
        for side, metadata in told.get(sample.file, {}).items():
            objects = [
                DetectedObject(thing.shape, 1.0, box_of(thing), thing.colour) for thing in sample.scene.things
            ]
            task = Task.model_validate(metadata)
            correct = verdict(task, by_class(objects, task.tag), "released").correct
            assert (side == "right" and sample.file not in beyond) == correct, (sample.file, side)


def box_of(thing):
    return thing.x - thing.radius, thing.y - thing.radius, thing.x + thing.radius, thing.y + thing.radius
