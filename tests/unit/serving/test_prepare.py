"""Preparation of calls: the seconds in which their images were decoded."""

import io
from time import monotonic

import PIL.Image
import pytest

import models.images.image
from models.core.calls import LabelCall, LikelihoodCall, TextCall, decoding_s
from models.images.formats.contract import DecoderKilled, ImageError
from models.images.image import Image
from service.scoring.engine import error_of
from service.serving.backends.contract import prepare_all
from tests.support.pictures import png


@pytest.fixture
def now(monkeypatch):
    """A clock of images that stands still, except that decoding takes four seconds."""
    clock = [100.0]

    def decode(encoded, header):
        clock[0] += 4.0
        return PIL.Image.open(io.BytesIO(encoded)).convert("RGB")

    monkeypatch.setattr(models.images.image, "monotonic", lambda: clock[0])
    monkeypatch.setattr(models.images.image, "decode", decode)
    return clock


def test_an_image_of_several_calls_counts_once(now):
    """Its pixels are shared, so it is decoded once."""
    image = Image(png())
    image.rgb.load()

    assert 4.0 == decoding_s([LikelihoodCall(image, each) for each in "ab"], since=100.0)


def test_decoding_counts_from_the_given_time_on(now):
    """What another group of the request decoded before is no part of this one's preparation."""
    image = Image(png())
    image.rgb.load()

    assert 1.0 == decoding_s([LikelihoodCall(image, "a")], since=103.0)
    assert 0.0 == decoding_s([LikelihoodCall(image, "a")], since=109.0)


def test_every_image_of_a_call_counts(now):
    """Those of a rubric's prompt, too; a text has none."""
    first, second = Image(png("red")), Image(png("blue"))
    for image in (first, second):
        image.rgb.load()
    call = LabelCall(first, "a", ("1", "2"), ("and", second))

    assert 8.0 == decoding_s([call, TextCall("a")], since=100.0)


def test_an_image_that_was_never_decoded_takes_no_time():
    """As in a gateway, whose replicas decode."""
    assert 0.0 == decoding_s([LikelihoodCall(Image(png()), "a")], since=monotonic())


@pytest.mark.parametrize(
    ("error", "code"), [(ImageError("broken"), "image_undecodable"), (DecoderKilled("killed"), "not_ready")]
)
def test_a_picture_is_at_fault_only_if_its_decoder_was_not_killed(error, code):
    """Of the calls of a group, and of a metric without a model."""

    def prepare(call):
        raise error

    [prepared] = prepare_all(prepare, "vqa", [TextCall("a dog")])

    assert code == prepared.code == error_of(error).code
