"""
Pictures of trainers: batches in their formats, split into single pictures, encoded and put into requests.

Pixels travel raw, or as PNG or JPEG.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

from scoregate.errors import BadImageError
from scoregate.images import Frames, check_one, encoded
from scoregate.items import Item

LIBRARIES = ("numpy", "torch")
CHANNELS = (1, 3, 4)
RANGE_SLACK = 0.05  # tolerated beyond [0, 1] for rounding; a picture in [-1, 1] exceeds it
FORMS: dict[str, dict[str, Any]] = {
    "raw": {},
    "png": {"format": "PNG", "compress_level": 1},  # a fifth of the time of the default, and 4 % larger
    "jpeg": {"format": "JPEG", "quality": 95},
}
MAX_BYTES = 16 * 2**20  # bytes of the pictures in a request; the service accepts 64 MiB by default


def image_list(images: Any, *, channels: int | None = None) -> list[Any]:
    """
    Return one picture for each of *images*, in order, as the client takes them.

    Args:
        images: a tensor or an array of four dimensions, uint8 or floats in [0, 1], or a sequence of
            pictures: tensors, arrays, PIL images, bytes, or `Frames`.
        channels: the axis of the colours in a batch; None finds it, and prefers NCHW for tensors and
            NHWC for arrays.

    Returns:
        uint8 arrays of HWC for tensors and arrays, otherwise the given objects.  A picture with NaN or
        an infinity is replaced by a `BadImageError`.

    Raises:
        ValueError: the shape is not valid, or floats are clearly outside [0, 1].
    """
    if not is_array(images):
        return [single(one) for one in images]
    if images.ndim != 4:
        raise ValueError(f"a batch of pictures has four dimensions, not {images.ndim}")
    axis = colour_axis(images) if channels is None else channels
    if images.shape[axis] not in CHANNELS:
        raise ValueError(f"no axis of {tuple(images.shape)} holds 1, 3 or 4 channels where they should be")
    if axis != 3:
        library = sys.modules[library_of(images)]
        images = library.moveaxis(images, axis, -1)
    return in_bytes(images)


def single(image: Any) -> Any:
    """Return one picture of a sequence; an array may lack the axis of its colours, or be a batch of one."""
    if not is_array(image):
        return image
    if image.ndim == 4 and len(image) == 1:
        return image_list(image)[0]
    return image_list(image[None, :, :, None] if image.ndim == 2 else image[None])[0]


def colour_axis(images: Any) -> int:
    """Return the most likely axis of the colours of a batch."""
    likely = (1, 3) if library_of(images) == "torch" else (3, 1)
    return next((axis for axis in likely if images.shape[axis] in CHANNELS), likely[0])


def in_bytes(images: Any) -> list[Any]:
    """Convert NHWC of bytes, or of floats in [0, 1], to arrays of bytes; round floats as flow_grpo does."""
    library = sys.modules[library_of(images)]
    images = images.detach() if hasattr(images, "detach") else images
    if images.dtype == library.uint8 or not len(images):
        return on_host(images)
    if "float" not in str(images.dtype):
        raise ValueError(f"pictures are uint8 or floats in [0, 1], not {images.dtype}")
    images = library.asarray(images, dtype=library.float32)
    lowest, highest = float(images.min()), float(images.max())
    if not isfinite(lowest + highest):  # NaN is the least and the greatest
        return without_broken(images, library)
    if lowest < -RANGE_SLACK or highest > 1 + RANGE_SLACK:
        raise ValueError(f"floats are in [0, 1], not from {lowest:.3g} to {highest:.3g}")
    scaled = (images if lowest >= 0 and highest <= 1 else images.clip(0, 1)) * 255
    return on_host(library.asarray(scaled.round(), dtype=library.uint8))


def without_broken(images: Any, library: Any) -> list[Any]:
    """Return the pixels of each picture as `in_bytes` does, or a `BadImageError` if a value is not finite."""
    finite = library.isfinite(images).reshape(len(images), -1).all(1).tolist()
    good = iter(in_bytes(images[finite]))
    return [next(good) if here else BadImageError("the picture holds NaN or an infinity") for here in finite]


def on_host(images: Any) -> list[Any]:
    """Return arrays of HWC in host memory."""
    return list(images.cpu().numpy() if library_of(images) == "torch" else images)


def is_array(value: Any) -> bool:
    """Return True if it is a tensor or an array."""
    return library_of(value) != "" and hasattr(value, "ndim")


def library_of(value: Any) -> str:
    """Return the first package of *value*'s classes that has arrays, or ""; nothing is imported."""
    packages = [kind.__module__.partition(".")[0] for kind in type(value).__mro__]
    return next((package for package in packages if package in LIBRARIES), "")


def check_encode(encode: str) -> None:
    """Raise `ValueError` for a form that does not exist."""
    if encode not in FORMS:
        raise ValueError(f"encode is one of {', '.join(FORMS)}, not {encode!r}")


def in_form(file: bytes, encode: str) -> bytes:
    """Return a BMP in the form *encode*, which needs Pillow unless it is `raw`; any other file unchanged."""
    if encode == "raw" or not file.startswith(b"BM"):
        return file
    import PIL.Image

    written = io.BytesIO()
    with PIL.Image.open(io.BytesIO(file)) as image:
        image.save(written, **FORMS[encode])
    return written.getvalue()


def items_of(
    images: Any,
    prompts: Sequence[str],
    channels: int | None,
    references: Sequence[Any] | None = None,
    encode: str = "raw",
) -> list[Item | BadImageError]:
    """
    Return an item for each picture, or the error of its encoding.

    Raises:
        ValueError, TypeError: *images* are not pictures, or *prompts* not as many texts.
    """
    files = [in_a_file(image, encode) for image in image_list(images, channels=channels)]
    related = [[]] * len(files) if references is None else [in_files(each, encode) for each in references]
    if isinstance(prompts, str) or len(files) != len(prompts):
        count = "one text" if isinstance(prompts, str) else len(prompts)
        raise ValueError(f"there must be a prompt for each of {len(files)} pictures, and there is {count}")
    if wrong := [type(prompt).__name__ for prompt in prompts if not isinstance(prompt, str)]:
        raise TypeError(f"a prompt is text, not {wrong[0]}")
    # NumPy's strings are made plain
    return [item_of(str(prompt), *both) for prompt, *both in zip(prompts, files, related, strict=True)]


def item_of(prompt: str, file: Any, references: Any) -> Item | BadImageError:
    """Return an item, or the error of one of its pictures."""
    broken = next((each for each in (file, references) if isinstance(each, BadImageError)), None)
    return broken or Item(prompt=prompt, image=file, references=references)


def in_a_file(image: Any, encode: str) -> Any:
    """Encode a picture, or each of `Frames`; return the error if it fails."""
    if isinstance(image, BadImageError):
        return image
    check_one(image, "a picture")
    if isinstance(image, Frames):
        frames = in_files(image.frames, encode)
        return frames if isinstance(frames, BadImageError) else Frames(frames)
    try:
        return in_form(encoded(image), encode)
    except BadImageError as error:
        return error


def in_files(images: Any, encode: str) -> Any:
    """Encode each picture; return the list, or the error of one."""
    files = [in_a_file(image, encode) for image in image_list(images)]
    return next((file for file in files if isinstance(file, BadImageError)), files)


def size_of(item: Any) -> int:
    """Return the number of bytes of an item's pictures."""
    frames = item.image.frames if isinstance(item.image, Frames) else [item.image]
    return sum(map(len, (*frames, *item.references)))


def in_batches(indices: Sequence[int], items: Sequence[Any], most: int) -> Iterator[list[int]]:
    """Yield *indices* in runs of at most *most* items and `MAX_BYTES`; a larger picture is alone."""
    batch: list[int] = []
    held = 0
    for index in indices:
        size = size_of(items[index])
        if batch and (len(batch) == most or held + size > MAX_BYTES):
            yield batch
            batch, held = [], 0
        batch.append(index)
        held += size
    if batch:
        yield batch
