"""Which frames of an item are scored: of a part of a video, and of how many."""

import pytest

from models.images.frame_stack import FrameStack
from service.core.errors import ImageTooLarge, NoFrames
from service.images.frames import ENTIRE, VIDEO_FRAMES, Films, TimeSpan
from service.images.loader import ImageRef, Url

FILM = [number / 24 for number in range(49)]  # two seconds
SLOW = [0, 0.5, 3, 3.1, 4]
VIDEO = Url("https://example.com/a.mp4")


@pytest.mark.parametrize(
    ("clip", "times", "expected"),
    [
        (TimeSpan(), SLOW, [0, 1, 2, 3]),
        (TimeSpan(start=0.5), SLOW, [1, 2, 3]),
        (TimeSpan(start=0.6, end=3), SLOW, [1]),
        (TimeSpan(end=99), SLOW, [0, 1, 2, 3]),
        (TimeSpan(start=4), SLOW, []),
        (TimeSpan(start=1e308, fps=1000), SLOW, []),
        (TimeSpan(fps=1), SLOW, [0, 1, 2]),
        (TimeSpan(fps=100), SLOW, [0, 1, 2, 3]),
        (TimeSpan(start=0.7, fps=1), SLOW, [1, 3]),
        (TimeSpan(end=1, fps=1), SLOW, [0]),
        (TimeSpan(start=0.4, end=0.9, fps=1), SLOW, [0]),
        (TimeSpan(fps=2), FILM, [0, 12, 24, 36]),
        (TimeSpan(fps=8), FILM, [*range(0, 48, 3)]),
        (TimeSpan(fps=24), FILM, [*range(48)]),
        (TimeSpan(start=0.5, end=1.5, fps=4), FILM, [12, 18, 24, 30]),
        (TimeSpan(fps=0.1), FILM, [0]),
        (TimeSpan(start=1, fps=1e-7), FILM, [24]),
        (TimeSpan(start=1, end=1.25, fps=1000), FILM, [*range(24, 30)]),
    ],
)
def test_frames_are_those_on_screen_at_each_step_of_the_rate(clip, times, expected):
    """Each once, from the start to before the end; without a rate all of them."""
    assert expected == clip.frames(times)


def images(*films, source=b""):
    """Return images by the numbers of their frames, a second each; None for a still image."""
    refs = [ImageRef(source) for _ in films]
    for ref, count in zip(refs, films, strict=True):
        if count is not None:
            ref.film = ImageRef(b"", FrameStack)
            ref.film.times = [float(n) for n in range(count + 1)]
    return refs


def scored(films, span=ENTIRE, samples=None, *, whole=False, chosen=False):
    """Return what `Films.scored` returns of the images of an item."""
    return Films().scored(films, span, samples, "options.dsg.samples", whole=whole, chosen=chosen)


@pytest.mark.parametrize(
    ("films", "span", "samples", "chosen", "expected"),
    [
        ([None, None], ENTIRE, None, True, ([(0, None), (1, None)], 2)),
        ([3], ENTIRE, None, True, ([(0, 0), (0, 1), (0, 2)], 3)),
        ([3], ENTIRE, None, False, ([(0, None)], 1)),
        ([None, 3], TimeSpan(start=1), None, False, ([(0, None), (1, 1), (1, 2)], 4)),
        ([10], ENTIRE, 4, True, ([(0, 1), (0, 3), (0, 6), (0, 8)], 10)),
        ([2, 2], ENTIRE, 2, True, ([(0, 1), (1, 1)], 4)),
    ],
)
def test_the_frames_of_all_files_are_counted_and_spread_together(films, span, samples, chosen, expected):
    """An animation is one frame, its first, unless it counts as its frames."""
    assert expected == scored(images(*films), span, samples, chosen=chosen)


@pytest.mark.parametrize(
    ("how", "count"),
    [
        ({}, 1),
        ({"whole": True}, 3),
        ({"chosen": True}, 3),
        ({"span": TimeSpan(start=0)}, 3),
        ({"span": TimeSpan(end=3)}, 3),
        ({"span": TimeSpan(fps=1)}, 3),
        ({"samples": 3}, 1),
    ],
)
def test_an_animation_counts_as_its_frames_if_the_request_sets_how_or_the_metric_takes_all(how, count):
    """A number of samples is one of the options by which the request has set how."""
    [animation] = images(3)

    assert count == scored([animation], **how)[1]


def test_only_files_that_count_as_their_frames_are_opened_as_films_and_only_scored_frames_are_decoded():
    """Those of all metrics together; a video is one for each metric, and its frames are in order."""
    [animation], [video], [still] = images(10), images(10, source=VIDEO), images(None)
    films, counted = [animation, video, still], Films()
    counted.scored(films, ENTIRE, 4, "samples", whole=False, chosen=False)
    assert [video] == [*counted.images]

    counted.scored(films, ENTIRE, 2, "samples", whole=False, chosen=True)
    counted.keep()
    assert {*films} == {*counted.images}
    assert ([5], [0, 3, 5, 6, 9]) == (animation.film.kept, video.film.kept)


def test_of_a_video_sixteen_frames_are_scored_unless_the_request_has_a_rate_or_a_number():
    """A video counts as its frames in any case."""
    [video] = images(100, source=VIDEO)

    def count(span=ENTIRE, samples=None):
        return len(scored([video], span, samples)[0])

    assert (VIDEO_FRAMES, 100, 20) == (count(), count(TimeSpan(fps=1)), count(samples=20))


def test_too_many_frames_and_none_are_errors():
    """They name the option that helps, and the time at which the video ends."""
    with pytest.raises(ImageTooLarge, match=r"^129 frames; at most 128; options\.dsg\.samples scores some"):
        scored(images(129), chosen=True)
    with pytest.raises(NoFrames, match=r"it lasts 3 s$"):
        scored(images(2, 3), TimeSpan(start=3))
