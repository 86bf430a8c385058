"""Animations and videos: counted by their container, decoded apart, within the memory that is counted."""

import hashlib
import pickle
import struct
from contextlib import suppress
from random import Random

import PIL.Image
import pytest

from models.images.formats.contract import MAX_FILM_FRAMES
from models.images.formats.registry import read_film, read_header
from models.images.frame_stack import FrameStack
from models.images.image import DecodeTime, Image, ImageError
from tests.support.films import COLOURS, declared_mp4, film, many_frames, mp4, plain
from tests.support.pictures import saved

ANIMATED = {
    "GIF": film("GIF"),
    "GIF that is disposed of": film("GIF", disposal=2),
    "GIF with a comment": film("GIF", comment=b"a" * 999),
    "WEBP": film("WEBP"),
}


class CountedStack(FrameStack):
    """A film that counts how often its frames were decoded."""

    times = 0

    def _decoded(self):
        self.times += 1
        return super()._decoded()


def colours(found: FrameStack) -> list[tuple[int, ...]]:
    """That of the pixel in the middle of each frame."""
    frames = [found.frame(number).rgb for number in range(found.header.frames)]
    return [rgb.getpixel((rgb.width // 2, rgb.height // 2)) for rgb in frames]


def of(*names: str) -> list[tuple[int, ...]]:
    return [PIL.Image.new("RGB", (1, 1), name).getpixel((0, 0)) for name in names]


@pytest.mark.parametrize("encoded", ANIMATED.values(), ids=ANIMATED)
def test_an_animation_has_its_frames_in_order(encoded):
    """Each as large as the canvas."""
    found = FrameStack(encoded)

    assert of("red", "lime", "blue") == colours(found)
    assert (16, 16) == found.frame(2).rgb.size == found.frame(2).size


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG", "JPEG"])
def test_a_still_picture_has_no_frames(format):
    """Its header is that of the picture, so nothing of it changes."""
    encoded = saved(plain("red"), format)

    assert 0 == read_film(encoded).frames
    assert read_header(encoded) == read_film(encoded)


def test_an_animation_is_decoded_once_for_all_its_frames():
    """Whatever is made of them."""
    found = CountedStack(ANIMATED["GIF"])
    for number in range(3):
        found.frame(number).once("size", lambda rgb: rgb.size)
    assert 1 == found.times

    assert found.release(lambda: None)
    assert of("lime") == [found.frame(1).rgb.getpixel((0, 0))]
    assert 2 == found.times


def test_what_is_made_of_one_frame_is_not_that_of_another():
    """They share the file, and nothing else."""
    found = FrameStack(ANIMATED["GIF"])
    first, last = (found.frame(number).once("pixel", lambda rgb: rgb.getpixel((0, 0))) for number in (0, 2))

    assert of("red", "blue") == [first, last]


def test_the_digest_of_a_frame_names_its_file_and_its_number():
    """Nothing is decoded for it."""
    one, again, other = FrameStack(ANIMATED["GIF"]), FrameStack(ANIMATED["GIF"]), FrameStack(ANIMATED["WEBP"])

    assert one.frame(1).digest == again.frame(1).digest
    assert 4 == len({one.digest, one.frame(0).digest, one.frame(1).digest, other.frame(1).digest})
    assert hashlib.sha256(ANIMATED["GIF"]).hexdigest() == one.digest
    assert {DecodeTime()} == {one.decode_time, again.decode_time, other.decode_time}


def test_a_frame_reaches_another_process_as_a_picture_of_its_own():
    """With its digest."""
    frame = FrameStack(ANIMATED["GIF"]).frame(1)
    sent = pickle.loads(pickle.dumps(frame))

    assert Image is type(sent)
    assert (frame.digest, frame.rgb.tobytes()) == (sent.digest, sent.rgb.tobytes())


def test_a_frame_that_is_not_there_is_an_error():
    """As where a URL gives another animation than before."""
    with pytest.raises(ImageError, match="only 3 frames"):
        FrameStack(ANIMATED["GIF"]).frame(3)


def test_the_canvas_is_as_large_as_any_frame_needs():
    """A later frame may be larger than the screen and than the first."""
    header = read_film(many_frames(5, (300, 200)))

    assert (300, 200, 5) == (header.width, header.height, header.frames)
    assert header.memory > 5 * 300 * 200 * 4
    assert header.apart


@pytest.mark.parametrize("encoded", ANIMATED.values(), ids=ANIMATED)
def test_only_frames_that_are_kept_are_decoded_to_rgb_and_counted(encoded):
    """They are those of the whole file."""
    found = FrameStack(encoded)
    all_frames = found.header.memory
    found.keep([2])

    assert of("blue") == [found.frame(2).rgb.getpixel((8, 8))]
    assert 2 * 16 * 16 * 4 == all_frames - found.header.memory
    with pytest.raises(KeyError):
        _ = found.frame(0).rgb


TIMES = {
    "GIF": (film("GIF", duration=[200, 50, 300]), [0, 0.2, 0.25, 0.55]),
    "GIF as fast as it can": (film("GIF", duration=0), [0, 0.1, 0.2, 0.3]),
    "GIF of ten frames a second": (film("GIF", COLOURS, duration=100), [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]),
    "WEBP": (film("WEBP", duration=[200, 50, 300]), [0, 0.2, 0.25, 0.55]),
    "MP4": (declared_mp4(16, 16, 3, fps=8), [0, 0.125, 0.25, 0.375]),
    "MP4 whose last frame has no duration": (declared_mp4(16, 16, 3, fps=8, last=0), [0, 0.125, 0.25, 0.375]),
    "MP4 of one frame without a duration": (declared_mp4(16, 16, 1, fps=8, last=0), [0, 0.125]),
}


@pytest.mark.parametrize(("encoded", "times"), TIMES.values(), ids=TIMES)
def test_the_times_of_frames_are_read_before_anything_is_decoded(encoded, times):
    """As players show them; the last is the end of the file.  A `start` of 0.3 is exactly 0.3."""
    assert times == read_film(encoded).times


REFUSED = {
    "too many frames": (many_frames(MAX_FILM_FRAMES + 1), "more than 10000 frames"),
    "too many blocks": (many_frames(2)[:-1] + b"!\xfe" + b"\1a" * 300_000, "steps"),
    "too many chunks": (film("WEBP") + b"ANMF\0\0\0\0" * 30_000, "chunks"),
    "too many frames in a video": (declared_mp4(16, 16, 2**31), "more than 10000 frames"),
    "a video without a time scale": (declared_mp4(16, 16, 3, fps=0), "times"),
    "a video with times of other frames": (
        declared_mp4(16, 16, 3).replace(struct.pack(">II", 3, 1), struct.pack(">II", 2, 1)),
        "not those of its 3 frames",
    ),
    "a video in fragments": (declared_mp4(16, 16, 0), "fragments"),
    "a video without pixels": (declared_mp4(0, 16, 3), "no pixels"),
    "a video without pictures": (declared_mp4(16, 16, 3).replace(b"vide", b"soun"), "no track"),
    "a box of no size": (declared_mp4(16, 16, 3) + struct.pack(">I4s", 4, b"free"), ""),
    "a video that breaks off": (declared_mp4(16, 16, 3)[:-80], "broken or truncated"),
}


@pytest.mark.parametrize(("encoded", "why"), REFUSED.values(), ids=REFUSED)
def test_what_no_clip_is_is_refused_before_it_is_decoded(encoded, why):
    """In words that say what it is."""
    if not why:  # behind what is needed, nobody looks
        assert 3 == read_film(encoded).frames
        return
    with pytest.raises(ImageError, match=why):
        read_film(encoded)


def test_a_video_says_its_size_and_its_frames_before_anything_is_decoded():
    """Its decoder keeps frames beside those that were asked for."""
    header = read_film(declared_mp4(640, 480, 49))

    assert ("MP4", 640, 480, 49) == (header.format, header.width, header.height, header.frames)
    assert header.memory > 640 * 480 * (49 * 4 + 24)


@pytest.mark.parametrize(
    "encoded",
    [
        pytest.param(declared_mp4(16, 16, 3), id="a video that holds none"),
        pytest.param(film("GIF")[:-20], id="an animation that breaks off"),
    ],
)
def test_fewer_frames_than_declared_are_an_error(encoded):
    """And no black frames in their place."""
    with pytest.raises(ImageError, match="broken"):
        _ = FrameStack(encoded).frame(0).rgb


@pytest.mark.parametrize("encoded", ANIMATED.values(), ids=ANIMATED)
def test_a_mutated_animation_is_frames_or_an_image_error(encoded):
    """Whatever is wrong with it."""
    chance = Random(7)
    for _ in range(40):
        mutated = bytearray(encoded)
        for _ in range(chance.choice([1, 3, 20])):
            mutated[chance.randrange(len(mutated))] = chance.randrange(256)
        with suppress(ImageError):
            found = FrameStack(bytes(mutated))
            header = found.header
            if header.frames and header.width * header.height * header.frames < 10**6:
                assert (header.width, header.height) == found.frame(0).rgb.size


def test_a_video_has_its_frames_in_order():
    """As they are shown; codecs lose a little of each colour."""
    pytest.importorskip("av", reason="the extra `video` is not installed")
    found = FrameStack(mp4(COLOURS))

    assert 6 == found.header.frames
    for expected, seen in zip(of(*COLOURS), colours(found), strict=True):
        assert max(abs(a - b) for a, b in zip(expected, seen, strict=True)) < 12


def test_a_video_with_frames_in_another_order_than_they_are_decoded_has_them_as_they_are_shown():
    """H.264 stores a frame before those that it predicts from both sides."""
    pytest.importorskip("av", reason="the extra `video` is not installed")
    found = FrameStack(mp4([*COLOURS, *COLOURS], codec="h264", fps=24))
    found.keep([3, 7, 11])

    assert [number / 24 for number in range(13)] == pytest.approx(found.header.times)
    seen = [found.frame(number).rgb.getpixel((32, 24)) for number in (3, 7, 11)]
    for expected, colour in zip(of("yellow", "lime", "white"), seen, strict=True):
        assert max(abs(a - b) for a, b in zip(expected, colour, strict=True)) < 12


def test_a_video_whose_frames_are_larger_than_its_container_says_is_an_error():
    """The decoder goes by the stream."""
    pytest.importorskip("av", reason="the extra `video` is not installed")
    encoded = mp4(size=(320, 240))
    lying = encoded.replace(struct.pack(">HH", 320, 240), struct.pack(">HH", 16, 16))
    assert (16, 16) == (read_film(lying).width, read_film(lying).height)

    with pytest.raises(ImageError, match="broken"):
        _ = FrameStack(lying).frame(0).rgb


def test_a_large_frame_is_scaled_down_as_it_is_decoded():
    """All of it is there; its size is known before, and is part of its digest."""
    half = PIL.Image.new("RGB", (64, 32), "red")
    half.paste("blue", (32, 0, 64, 32))
    encoded = saved(half, "GIF", save_all=True, append_images=[half.rotate(180)])
    whole, scaled = FrameStack(encoded), FrameStack(encoded)
    scaled.keep([0, 1], 16 * 8)
    first = scaled.frame(0)

    assert (16, 8) == first.size == first.rgb.size == scaled.header.frame_size
    assert of("red", "blue") == [first.rgb.getpixel((x, 4)) for x in (2, 13)]
    assert whole.header.memory - scaled.header.memory == 2 * 4 * (64 * 32 - 16 * 8)
    assert first.digest != whole.frame(0).digest
    scaled.keep([0, 1], 64 * 32)
    assert whole.frame(0).digest == FrameStack(encoded).frame(0).digest == scaled.frame(0).digest


@pytest.mark.parametrize(
    ("most", "size"),
    [
        (0, (1920, 1080)),
        (960 * 540, (960, 540)),
        (10**9, (1920, 1080)),
        (1, (1, 1)),
        (100, (13, 7)),
    ],
)
def test_a_scaled_frame_has_the_shape_of_the_canvas(most, size):
    """To whole pixels, and at least one; turned, it is the same upright."""
    header = read_film(declared_mp4(1920, 1080, 3)).keeping([0], most)

    assert size == header.frame_size == header.upright(6).frame_size[::-1]
