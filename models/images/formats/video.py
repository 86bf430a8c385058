"""The frames of a video through PyAV, which the extra `video` of the package installs."""

import io
from collections.abc import Iterator

import av
import PIL.Image


def video_frames(encoded: bytes, format: str) -> Iterator[PIL.Image.Image]:
    """
    The frames of the first track of pictures, in the order in which they are shown.

    Cuts and turns that the container asks for are ignored, as a picture's orientation is.
    """
    # One thread, for each takes memory of its own.
    with av.open(io.BytesIO(encoded), format=format.lower(), options={"ignore_editlist": "1"}) as container:
        stream = container.streams.video[0]
        stream.thread_type, stream.thread_count = "NONE", 1
        for frame in container.decode(stream):
            yield frame.to_image()
