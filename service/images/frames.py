"""
The frames of an item that are scored: which files count as their frames, the part of a video, the rate, their
number, and the limits.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple, TypeVar

from models.images.frame_stack import FrameStack
from models.images.image import Image
from service.core.concurrency.tasks import side_by_side
from service.core.errors import BadImage, ImageTooLarge, MemoryFull, NoFrames
from service.images.loader import ImageLoader, ImageRef
from service.serving.context import Context

MAX_FILES = 64  # files of an item, which are its frames or have some
MAX_FRAMES = 128  # most frames of an item that are scored
MAX_FPS = 1_000  # most frames that are taken from each second
VIDEO_FRAMES = 16  # frames of a video if the request sets neither a rate nor a number
ROUNDING_S = 1e-9  # seconds by which rounding may move the time of a frame
ONE_FRAME = (0.0, 0.0)  # times of a film that cannot be opened
FILES_COUNTED_AT_ONCE = 32  # files whose frames are counted at the same time

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


@dataclass(eq=False, slots=True)
class Films:
    """
    The images of a request that count as their frames, and the frames of them that are scored.

    Attributes:
        images: those that count as their frames for some metric, if they have several.
    """

    images: dict[ImageRef, None] = field(default_factory=dict)
    _scored: dict[ImageRef, set[int]] = field(default_factory=dict)

    def scored(
        self,
        images: Sequence[ImageRef],
        span: TimeSpan,
        samples: int | None,
        option: str,
        *,
        whole: bool,
        chosen: bool,
    ) -> tuple[list[Frame], int]:
        """
        Return the frames of an item that a metric scores, and the number of frames that the item has.

        A video counts as its frames.  So does an animation if *span* is a part or has a rate, or if *whole*
        or *chosen* is set.

        Args:
            images: of the item; one counts as several frames only after `count` has set its film.
            samples: the number of frames to score; None for all of *span*, of a video without a rate for
                `VIDEO_FRAMES`.
            option: the name of *samples* in the request, for the error.
            whole: the metric scores all frames at once.
            chosen: the request sets how frames are taken or folded.

        Raises:
            NoFrames: no frame is in *span*.
            ImageTooLarge: there are more than `MAX_FRAMES`, and *samples* is None.
        """
        every = whole or chosen or span != ENTIRE
        films = {image: image.film for image in images if every or image.video}
        self.images |= dict.fromkeys(films)
        frames, given, lasts = list[Frame](), 0, 0.0
        for file, image in enumerate(images):
            if film := films.get(image):
                given += len(film.times) - 1
                lasts = max(lasts, film.times[-1])
                numbers = [0] if film.times is ONE_FRAME else span.frames(film.times)
                frames += [Frame(file, number) for number in numbers]
            else:
                given += 1
                frames.append(Frame(file))
        if samples is None and span.fps is None and any(image.video for image in films):
            samples = VIDEO_FRAMES
        if not frames:
            raise NoFrames(f"no frame is between start and end; it lasts {lasts:g} s")
        if samples is not None:
            frames = sampled(frames, samples)
        elif len(frames) > MAX_FRAMES:
            raise ImageTooLarge(f"{len(frames)} frames; at most {MAX_FRAMES}; {option} scores some of them")
        for file, number in frames:
            if number is not None and (film := films[images[file]]):
                self._scored.setdefault(film, set()).add(number)
        return frames, given

    async def count(self, loader: ImageLoader, context: Context) -> bool:
        """
        Set the film of each image that is animated.  Nothing is decoded, and nothing is raised.

        Returns:
            True if any is animated.
        """
        counts = (count_frames(image, loader, context) for image in self.images)
        await side_by_side(counts, lambda: FILES_COUNTED_AT_ONCE)
        return any(image.film for image in self.images)

    def keep(self) -> None:
        """Decode of each film only the frames that some metric scores."""
        for film, numbers in self._scored.items():
            film.keep(numbers)


async def count_frames(image: ImageRef, loader: ImageLoader, context: Context) -> None:
    """Set the film of *image* if it is animated; one that cannot be opened counts as one frame."""
    film = ImageRef(image.source, FrameStack, image.orient)
    try:
        async with asyncio.timeout_at(context.deadline), loader.read(film, context) as stack:
            film.times = stack.header.times
    except (TimeoutError, MemoryFull):  # scoring will raise it again
        return
    except BadImage:  # opening it raises the error again
        film.times = ONE_FRAME
    image.source = film.source
    if film.times:
        image.film = film
    elif isinstance(film.image, FrameStack):  # its file need not be read again
        image.image = Image.over(film.image)
