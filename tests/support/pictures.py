"""Pictures as files and as JSON carries them."""

import base64
import io
from typing import Any

import PIL.Image


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
