"""The part of a video or an animation that is scored, and the rate at which frames are taken."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

ROUNDING_S = 1e-9  # of a frame's time


@dataclass(frozen=True, slots=True)
class Clip:
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


WHOLE = Clip()
