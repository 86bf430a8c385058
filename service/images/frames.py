"""The frames of an item that are scored: the part of a video, the rate, their number, and the limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple, TypeVar

from service.core.errors import ImageTooLarge, NoFrames
from service.images.loader import ONE_FRAME, ImageRef

MAX_FRAMES = 128  # most frames of an item that are scored
VIDEO_FRAMES = 16  # frames of a video if the request sets neither a rate nor a number
ROUNDING_S = 1e-9  # seconds by which rounding may move the time of a frame

T = TypeVar("T")


class Frame(NamedTuple):
    """A frame of an item: the index of its file, and its number in that if the file counts as its frames."""

    file: int
    number: int | None = None


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """
    A part of a video, in seconds from its first frame.

    Attributes:
        start, end: the first moment, and the one after the last; None for those of the file.
        fps: frames that are taken from each second; None for all frames.
    """

    start: float | None = None
    end: float | None = None
    fps: float | None = None

    def frames(self, times: Sequence[float]) -> list[int]:
        """
        Return the numbers of the frames that are taken, in order and each once; none after the file's end.

        With a rate these are the frames on screen at `start`, `start + 1 / fps`, and so on.

        Args:
            times: when each frame appears, and when the last one ends.
        """
        start, end = self.start or 0.0, times[-1] if self.end is None else min(self.end, times[-1])
        shown = [n for n in range(len(times) - 1) if times[n + 1] > start and times[n] < end]
        if self.fps is None or not shown:
            return shown
        steps = [max(0, ceil((time - start - ROUNDING_S) * self.fps)) for time in times]
        last = ceil((end - start - ROUNDING_S) * self.fps)
        return [n for n in shown if steps[n] < min(steps[n + 1], last)]


ENTIRE = TimeSpan()


def sampled(frames: Sequence[T], count: int) -> list[T]:
    """
    Return the middle frame of each of *count* equal parts; all frames if there are no more.

    For 10 frames and a count of 4 these are the frames 1, 3, 6 and 8.
    """
    count = min(count, len(frames))
    return [frames[(2 * part + 1) * len(frames) // (2 * count)] for part in range(count)]


def scored_frames(
    images: Sequence[ImageRef], span: TimeSpan, samples: int | None, every: bool, option: str
) -> tuple[list[Frame], int]:
    """
    Return the frames of an item that a metric scores, and the number of frames that the item has.

    Args:
        images: of the item; the frames of each film are counted.
        samples: the number of frames to score; None for all of *span*, of a video without a rate for
            `VIDEO_FRAMES`.
        every: an animation counts as its frames; a video always does.
        option: the name of *samples* in the request, for the error.

    Raises:
        NoFrames: no frame is in *span*.
        ImageTooLarge: there are more than `MAX_FRAMES`, and *samples* is None.
    """
    frames, given, lasts = list[Frame](), 0, 0.0
    for file, image in enumerate(images):
        if (every or image.video) and (film := image.film):
            given += len(film.times) - 1
            lasts = max(lasts, film.times[-1])
            numbers = [0] if film.times is ONE_FRAME else span.frames(film.times)
            frames += [Frame(file, number) for number in numbers]
        else:
            given += 1
            frames.append(Frame(file))
    if samples is None and span.fps is None and any(image.video for image in images):
        samples = VIDEO_FRAMES
    if not frames:
        raise NoFrames(f"no frame is between start and end; it lasts {lasts:g} s")
    if samples is not None:
        return sampled(frames, samples), given
    if len(frames) > MAX_FRAMES:
        raise ImageTooLarge(f"{len(frames)} frames; at most {MAX_FRAMES}; {option} scores some of them")
    return frames, given
