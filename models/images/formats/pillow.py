"""Decoding in this process: pictures and animations through Pillow, videos through PyAV."""

import importlib
import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import PIL.Image
import PIL.TiffImagePlugin

from models.images.formats.contract import Header, ImageError
from models.images.formats.mp4 import MP4, MP4_PACKAGE

# The size is checked on the header before; Pillow's own limit would only warn, and later.
PIL.Image.MAX_IMAGE_PIXELS = None

# Allocate a picture in one piece: from 32 MiB on, malloc returns it to the system.  Pillow's pieces of 16 MiB
# would remain in the heaps of the threads that decoded them, and exceed the memory budget.
PIL.Image.core.set_block_size(2**30)  # type: ignore[attr-defined]

# Warnings about broken palettes and the like: the picture is scored or rejected anyway.
warnings.filterwarnings("ignore", module=r"PIL\.")

BICUBIC = PIL.Image.Resampling.BICUBIC  # Pillow's has antialiasing

TRANSPARENT_KEY = "seen through"  # `info` of decoded pixels has it if one of the file's is not opaque
COLOUR_KEY_MODES = ("1", "L", "P", "RGB")  # modes that may have a transparent colour

Frames = Callable[[bytes, str, Sequence[int]], Iterator[PIL.Image.Image]]

# They turn pixels with an EXIF orientation upright.
UPRIGHT_TURNS = {
    2: PIL.Image.Transpose.FLIP_LEFT_RIGHT,
    3: PIL.Image.Transpose.ROTATE_180,
    4: PIL.Image.Transpose.FLIP_TOP_BOTTOM,
    5: PIL.Image.Transpose.TRANSPOSE,
    6: PIL.Image.Transpose.ROTATE_270,
    7: PIL.Image.Transpose.TRANSVERSE,
    8: PIL.Image.Transpose.ROTATE_90,
}


def rgb(encoded: bytes, header: Header) -> PIL.Image.Image:
    """
    Decode to RGB like the reference: `convert("RGB")` of the first frame.

    Orientation and alpha are ignored, 16-bit values are clipped.  `info` has `TRANSPARENT_KEY`.

    Raises:
        ImageError: the picture is broken, or larger than its header says.  Pillow's own error would hold a
            reference to the pixels.
    """
    pixels = converted(encoded, header)
    if pixels is None:
        raise ImageError(f"the {header.format} image is broken or truncated")
    return pixels


def converted(encoded: bytes, header: Header) -> PIL.Image.Image | None:
    """Decode to RGB; return None if that is not possible.  An error raised here would keep the picture."""
    with (
        suppress(Exception),  # Pillow's plugins raise many kinds for a broken file
        PIL.Image.open(io.BytesIO(encoded), formats=[header.format]) as image,
    ):
        if image.width * image.height > header.width * header.height:
            return None
        if isinstance(image, PIL.TiffImagePlugin.TiffImageFile):
            image.load_end = lambda: None  # type: ignore[method-assign]  # it would turn the picture
        image.load()
        transparent = is_transparent(image)
        image.info.pop("transparency", None)  # ignored, and Pillow warns where it is a table
        # The pixels alone; `convert` would copy those of RGB.
        pixels = PIL.Image.Image()._new(image.im) if image.mode == "RGB" else image.convert("RGB")
        pixels.info[TRANSPARENT_KEY] = transparent
        return pixels
    return None


def is_transparent(image: PIL.Image.Image) -> bool:
    """Return True if a pixel is not opaque, or if that is unknown: a colour of more than 8 bits."""
    if not image.has_transparency_data:
        return False
    if image.mode in COLOUR_KEY_MODES:
        image = image.convert("RGBA")
    *_, last = image.getbands()
    return last.lower() != "a" or any(image.getchannel(last).histogram()[:255])


def frames(encoded: bytes, format: str, numbers: Sequence[int]) -> Iterator[PIL.Image.Image]:
    """
    Yield some frames of an animation as RGB, without alpha.

    Raises `EOFError` if there are fewer.
    """
    with PIL.Image.open(io.BytesIO(encoded), formats=[format]) as image:
        for number in numbers:
            image.seek(number)
            image.load()
            pixels = image.convert("RGB")
            pixels.info[TRANSPARENT_KEY] = is_transparent(image)
            yield pixels


def turned(image: PIL.Image.Image, orientation: int) -> PIL.Image.Image:
    """Turn *image*, stored with that orientation, upright."""
    turn = UPRIGHT_TURNS.get(orientation)
    return image if turn is None else image.transpose(turn)


def decoder(format: str) -> Frames:
    """Return the decoder for frames of a format.  Raises `ImportError` if it is not installed."""
    if format == MP4.name:
        importlib.import_module(MP4_PACKAGE)
        return video_frames
    return frames


def kept_frames(encoded: bytes, header: Header, frames: Frames) -> Iterator[PIL.Image.Image]:
    """
    Yield the frames that *header* keeps, in order and scaled down to its `frame_size`.

    Raises:
        ImageError: the file is broken, or has fewer or larger frames than its header.
    """
    size, found = (header.width, header.height), 0
    with suppress(Exception):  # decoders raise many kinds for a broken file
        for frame in frames(encoded, header.format, header.kept):
            if frame.width > header.width or frame.height > header.height:
                break
            whole = frame if frame.size == size else on_canvas(frame, size)
            scaled = whole if size == header.frame_size else whole.resize(header.frame_size, BICUBIC)
            scaled.info[TRANSPARENT_KEY] = frame.info.get(TRANSPARENT_KEY, False)
            yield scaled
            found += 1
    if found < len(header.kept):
        raise ImageError(f"the {header.format} file is broken before frame {header.kept[found]} ends")


def on_canvas(frame: PIL.Image.Image, size: tuple[int, int]) -> PIL.Image.Image:
    """Return a smaller frame in the upper left corner of a black canvas."""
    canvas = PIL.Image.new("RGB", size)
    canvas.paste(frame)
    return canvas


def video_frames(encoded: bytes, format: str, numbers: Sequence[int]) -> Iterator[PIL.Image.Image]:
    """
    Yield some frames of the first video track, numbered in presentation order; only these become RGB.

    Edit lists and rotations of the container are ignored.
    """
    import av  # large, and an extra

    # One thread, since each takes memory of its own.
    with av.open(io.BytesIO(encoded), format=format.lower(), options={"ignore_editlist": "1"}) as container:
        stream = container.streams.video[0]
        stream.thread_type, stream.thread_count = "NONE", 1
        wanted = set(numbers)
        for number, frame in zip(range(numbers[-1] + 1), container.decode(stream), strict=False):
            if number in wanted:
                yield frame.to_image()
