"""Decoding of videos through PyAV, which the extra `video` of the package installs."""

import io
from collections.abc import Iterator, Sequence

import av
import PIL.Image


def video_frames(encoded: bytes, format: str, numbers: Sequence[int]) -> Iterator[PIL.Image.Image]:
    """
    Yield some frames of the first video track, numbered in presentation order; only these become RGB.

    Edit lists and rotations of the container are ignored.
    """
    # One thread, since each takes memory of its own.
    with av.open(io.BytesIO(encoded), format=format.lower(), options={"ignore_editlist": "1"}) as container:
        stream = container.streams.video[0]
        stream.thread_type, stream.thread_count = "NONE", 1
        wanted = set(numbers)
        for number, frame in zip(range(numbers[-1] + 1), container.decode(stream), strict=False):
            if number in wanted:
                yield frame.to_image()
