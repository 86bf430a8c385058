"""Pictures as files and as JSON carries them."""

import base64
import io
from typing import Any

import PIL.Image

from models.images.image import Image


def png(colour: str = "red", size: tuple[int, int] = (16, 16), mode: str = "RGB") -> bytes:
    """A plain PNG file."""
    return saved(PIL.Image.new("RGB", size, colour).convert(mode), "PNG")


def saved(image: PIL.Image.Image, format: str, **options: Any) -> bytes:
    """An image file's bytes."""
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def b64(data: bytes) -> str:
    """As JSON carries an image."""
    return base64.b64encode(data).decode()


def item(prompt: str = "a red square", image: Any = None, **more: Any) -> dict[str, Any]:
    """An item of a request."""
    return {"prompt": prompt, "image": b64(png()) if image is None else image, **more}


def pixels(image: Image) -> PIL.Image.Image:
    """Return the pixels of an image whose request, which reserved memory for them, has ended."""
    image.file.reserve()
    return image.rgb


def picture(mode: str = "RGB", size: tuple[int, int] = (40, 30)) -> PIL.Image.Image:
    """Every pixel different, in any mode."""
    red = PIL.Image.linear_gradient("L").resize(size)
    rgb = PIL.Image.merge("RGB", (red, red.rotate(180), red.transpose(PIL.Image.Transpose.FLIP_LEFT_RIGHT)))
    return rgb.convert(mode)


def see_through() -> bytes:
    """A PNG that is opaque below and transparent above."""
    rgba = picture("RGBA")
    rgba.putalpha(PIL.Image.linear_gradient("L").resize(rgba.size))
    return saved(rgba, "PNG")
