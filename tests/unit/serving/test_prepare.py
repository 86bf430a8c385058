"""Preparation of calls: the seconds in which their images were decoded."""

from time import monotonic

import pytest

from models.core.calls import LabelCall, LikelihoodCall, TextCall, decoding_s
from models.images.formats.contract import DecoderKilled, ImageError
from models.images.image import DecodeTime, Image
from service.scoring.engine import error_of
from service.serving.backends.contract import prepare_all
from tests.support.pictures import png


def decoded(colour="red", began=100.0):
    """An image that was decoded in four seconds."""
    image = Image(png(colour))
    image.decode_time = DecodeTime(began, 4.0)
    return image


def test_an_image_notes_when_it_was_decoded_and_how_long_that_took():
    """Until its pixels are released."""
    image, before = Image(png()), monotonic()
    image.rgb.load()
    began, seconds = image.decode_time

    assert before <= began < began + seconds <= monotonic()


def test_an_image_of_several_calls_counts_once():
    """Its pixels are shared, so it is decoded once."""
    image = decoded()

    assert 4.0 == decoding_s([LikelihoodCall(image, each) for each in "ab"], since=100.0)


def test_decoding_counts_from_the_given_time_on():
    """What another group of the request decoded before is no part of this one's preparation."""
    image = decoded()

    assert 1.0 == decoding_s([LikelihoodCall(image, "a")], since=103.0)
    assert 0.0 == decoding_s([LikelihoodCall(image, "a")], since=109.0)


def test_every_image_of_a_call_counts():
    """Those of a rubric's prompt, too; a text has none."""
    first, second = decoded("red", 100.0), decoded("blue", 104.0)
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
