"""What is sent to replicas on Ray: images as files, each once."""

from models.core.calls import EditCall, EntailmentCall, VideoCall
from models.images.frame_stack import FrameStack
from models.images.image import Image
from service.serving.ray.groups import Sending
from tests.support.films import decoded_films, film

__all__ = ["decoded_films"]


def test_frames_are_sent_as_pictures_of_their_own(decoded_films):
    """Decoded while their memory is reserved, not when the call is pickled; their keys are the same."""
    stack = FrameStack(film())
    stack.keep([0, 1, 2])
    frames = tuple(stack.frame(number) for number in (0, 1, 2, 1))
    call = VideoCall(frames, "a cat")
    sent = Sending(7).prepare(call).data

    assert {Image} == {*map(type, sent.frames)}
    assert [(255, 0, 0), (0, 255, 0), (0, 0, 255)] == [each.rgb.getpixel((0, 0)) for each in sent.frames[:3]]
    assert sent.frames[1] is sent.frames[3]
    assert call.key(()) == sent.key(())


def test_the_source_of_an_edit_is_sent_as_a_picture_of_its_own(decoded_films):
    """As each other image of a call."""
    stack = FrameStack(film())
    stack.keep([0, 1])
    call = EditCall(stack.frame(1), "make it green", stack.frame(0))
    sent = Sending(7).prepare(call).data

    assert [Image, Image] == [*map(type, sent.images)]
    assert call.key(()) == sent.key(())


def test_a_call_without_images_is_sent_as_it_is():
    """It has nothing to encode."""
    call = EntailmentCall("a cat sits", "a cat")

    assert call is Sending(7).prepare(call).data
