"""Videos as pipelines return them: many frames, in any of their forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scoregate.errors import BadImage

MAX_FRAMES = 64  # of an item, in the service
TAKEN = 16  # of more frames, as the service takes of a video file

BATCH, VIDEO = 5, 4  # dimensions of arrays and tensors


def spread(frames: Any, count: int = TAKEN) -> list[Any]:
    """Return the middle frame of each of *count* equal parts, as the service does; all if there are fewer."""
    count = min(count, len(frames))
    return [frames[(2 * part + 1) * len(frames) // (2 * count)] for part in range(count)]


def frames_of(image: Any, taken: int = TAKEN) -> Any:
    """
    Return the frames of a video as a list, and anything else unchanged.

    A video is what a pipeline of diffusers returns, its `frames` or one of them: PIL images in a list, or an
    array or a tensor with an axis of frames.  More than `MAX_FRAMES` are spread to *taken*.

    Raises:
        BadImage: a batch of several videos.
    """
    video = image.frames if hasattr(image, "frames") else image
    if dimensions(video) == BATCH or (is_list(video) and any(map(is_video, video))):
        if len(video) != 1:
            raise BadImage(f"a batch of {len(video)} videos; give one of them, such as frames[0]")
        video = video[0]
    if not is_video(video):
        return image
    return list(video) if len(video) <= MAX_FRAMES else spread(video, taken)


def is_video(value: Any) -> bool:
    """Return True for a list of pictures, and for an array or a tensor with an axis of frames."""
    return is_list(value) or dimensions(value) == VIDEO


def dimensions(value: Any) -> int:
    """Return the number of axes of an array or a tensor; 0 for anything else."""
    number: int = getattr(value, "ndim", 0)
    return number


def is_list(value: Any) -> bool:
    """Return True for a sequence of pictures, which is no array."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))
