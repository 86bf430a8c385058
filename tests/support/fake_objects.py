"""A detector and a CLIP that find what a test says."""

import io

import numpy as np
import PIL.Image
import PIL.ImageDraw

from models.core.calls import DetectCall, ImageCall
from models.core.outcomes import Detection, Detections, Embedding, packed
from service.metrics.objects.detections import COLOURS, GREY
from tests.support.fakes import FakeClip, FakeDetector
from tests.support.pictures import b64, item, saved

SIZE = 64


class Detector(FakeDetector):
    """Finds its `found` in every image."""

    found: tuple[Detection, ...] = ()

    def answer(self, call: DetectCall) -> Detections:
        return Detections(tuple(each for each in self.found if each.score > call.threshold))

    def knows(self, *labels: str) -> None:
        object.__setattr__(self.info, "labels", labels)

    def draws_no_masks(self) -> None:
        object.__setattr__(self.info, "masks", False)


class FakeColours(FakeClip):
    """An image lies where the colour does that most of its pixels have which are not grey."""

    def answer(self, call):
        if not isinstance(call, ImageCall):
            return super().answer(call) if "photo" not in call.text else unit(colour_in(call.text))
        with PIL.Image.open(io.BytesIO(call.image.encoded)) as picture:
            counts = {
                pixel: count for count, pixel in picture.convert("RGB").getcolors(2**16) if pixel != GREY
            }
        return unit(next(name for name in COLOURS if pixel_of(name) == max(counts, key=counts.get)))


class Leaning(FakeClip):
    """Texts about red lie at `red` degrees from every image, those about blue at `blue`, others far away."""

    red = blue = (0, 0, 0)

    def answer(self, call):
        if isinstance(call, ImageCall):
            return Embedding(np.array([1, 0], np.float32))
        if "photo" not in call.text:
            return super().answer(call)  # the warm-up's
        colour = colour_in(call.text)
        template = 2 if call.text.endswith("object") else int("-colored" in call.text)
        angle = np.radians({"red": self.red, "blue": self.blue}.get(colour, (170, 180, 190))[template])
        return Embedding(np.array([np.cos(angle), np.sin(angle)], np.float32))


def colour_in(text):
    return next(name for name in COLOURS if f" {name} " in text or f" {name}-" in text)


def pixel_of(colour):
    return PIL.Image.new("RGB", (1, 1), colour).getpixel((0, 0))


def unit(colour):
    return Embedding(np.eye(len(COLOURS), dtype=np.float32)[COLOURS.index(colour)])


def detection(label, score=0.95, box=(0, 0, 10, 10), mask=None):
    left, top, right, bottom = map(float, box)
    pixels = np.ones((box[3] - box[1], box[2] - box[0]), bool) if mask is None else mask
    return Detection(label, score, (left, top, right, bottom), packed(pixels))


def picture(*shapes):
    """Boxes of colours on blue."""
    drawn = PIL.Image.new("RGB", (SIZE, SIZE), "blue")
    for colour, (left, top, right, bottom) in shapes:
        PIL.ImageDraw.Draw(drawn).rectangle((left, top, right - 1, bottom - 1), fill=colour)
    return b64(saved(drawn, "PNG"))


async def scored(client, prompt, image=None, /, **options):
    body = {
        "items": [item(prompt, image or picture(), options={"geneval": options})],
        "metrics": ["geneval"],
        "explain": True,
    }
    answer = await client.post("/score", json=body)
    assert 200 == answer.status_code, answer.text
    return {**answer.json()["results"][0], "warnings": answer.json().get("warnings", [])}
