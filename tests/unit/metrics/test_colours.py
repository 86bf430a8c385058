"""What CLIP is asked about the colour of an object."""

import numpy as np
import pytest

from models.core.calls import TextCall
from models.core.outcomes import Embedding
from models.families.fake.model import GREY
from service.metrics.objects.detections import COLOUR_TEMPLATES, COLOURS, DetectedObject, colours_of, texts_of
from tests.support.fake_objects import detection


def test_each_colour_is_asked_for_in_three_templates_two_of_which_name_the_class():
    """As in the released code, which calls anything an object in the third."""
    texts = texts_of("dog")

    assert ["a photo of a red dog", "a photo of a red-colored dog", "a photo of a red object"] == texts[:3]
    assert len(texts) == 3 * len(COLOURS) == 3 * len(set(COLOURS))
    assert all(f" {colour} dog" in texts[3 * n] for n, colour in enumerate(COLOURS))


class Clip:
    """Each text lies at its colour, and the images at those of `seen` in turn."""

    def __init__(self, *seen):
        self.seen, self.texts = iter(seen), []

    async def ask(self, role, calls):
        assert "clip" == role
        return [Embedding(np.eye(len(COLOURS), dtype=np.float32)[self.place(call)]) for call in calls]

    def place(self, call):
        if not isinstance(call, TextCall):
            return COLOURS.index(next(self.seen))
        self.texts.append(call.text)
        return (len(self.texts) - 1) // len(COLOUR_TEMPLATES) % len(COLOURS)


@pytest.mark.anyio
async def test_an_object_has_the_likeliest_colour_of_its_own_class():
    """The texts of each class are computed once."""
    found = [
        DetectedObject(name, 0.9 - n / 10, (0.0, 0.0, 8.0, 8.0), seen=detection(name))
        for n, name in enumerate(("dog", "cat", "dog"))
    ]
    clip = Clip("blue", "green", "red")

    assert ["blue", "green", "red"] == [*(await colours_of(GREY, found, clip)).values()]
    assert [*texts_of("dog"), *texts_of("cat")] == clip.texts
