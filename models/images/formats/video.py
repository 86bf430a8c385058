"""Decoding of videos through PyAV, which the extra `video` of the package installs."""

import io
from collections.abc import Iterator

import av
import PIL.Image


def video_frames(encoded: bytes, format: str) -> Iterator[PIL.Image.Image]:
    """
    Yield the frames of the first video track in presentation order.

    Edit lists and rotations of the container are ignored.
    """
    # One thread, since each takes memory of its own.
    with av.open(io.BytesIO(encoded), format=format.lower(), options={"ignore_editlist": "1"}) as container:
        stream = container.streams.video[0]
        stream.thread_type, stream.thread_count = "NONE", 1
        for frame in container.decode(stream):
            yield frame.to_image()
