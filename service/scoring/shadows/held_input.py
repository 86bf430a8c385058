"""An input whose images outlive their request."""

from collections.abc import Iterator
from dataclasses import replace

from models.images.image import Image
from service.images.loader import ImageRef
from service.images.sources import Encoded
from service.scoring.frames import FrameRef, MetricInput


def held(input: MetricInput) -> tuple[MetricInput, int]:
    """
    Return a copy of *input* that can be opened after its request, and the bytes of its images.

    The images of *input* must be open.  The copy shares no pixels with them, and fetches nothing again.
    """
    images = {ref.image: copy_of(ref.image) for ref in (*input.frames, *input.others)}
    copied = replace(
        input,
        frames=tuple(over(input.frames, images)),
        references=tuple(over(input.references, images)),
        source=next(over((input.source,) if input.source else (), images), None),
    )
    return copied, sum(image.source.size for image in images.values())


def copy_of(opened: ImageRef) -> ImageRef:
    """Return the opened image again, with its bytes in memory and no pixels."""
    if not isinstance(opened.image, Image):
        raise TypeError("the image is not open")
    copy = ImageRef(Encoded(opened.image.encoded), opened.kind, opened.orient)
    copy.image = type(opened.image).over(opened.image)
    return copy


def over(frames: tuple[FrameRef, ...], images: dict[ImageRef, ImageRef]) -> Iterator[FrameRef]:
    """Yield *frames* of the copied *images*."""
    return (replace(frame, image=images[frame.image]) for frame in frames)
