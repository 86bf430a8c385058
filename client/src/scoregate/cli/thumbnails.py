"""Pictures embedded in a page: thumbnails if Pillow is installed, else the originals."""

import base64
import io
from importlib.util import find_spec

from scoregate.cli.signatures import kind_of

SIDE = 256  # pixels
MAX_PIXELS = 100_000_000  # a larger picture is not decoded
SHOWN = {"jpeg", "png", "gif", "bmp", "webp", "avif"}  # by browsers


def data_uri(picture: bytes) -> str:
    """Return the picture as the address of an image; empty if it can't be shown."""
    small = thumbnail(picture) if find_spec("PIL") else picture
    kind = kind_of(small)
    return f"data:image/{kind};base64,{base64.b64encode(small).decode()}" if kind in SHOWN else ""


def thumbnail(picture: bytes) -> bytes:
    """Return a small JPEG of what is scored: no orientation, no transparency.  Empty if it can't be read."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(picture)) as image:
            if image.width * image.height > MAX_PIXELS:
                return b""
            image.draft("RGB", (2 * SIDE, 2 * SIDE))
            small = image.convert("RGB")
    except Exception:  # Pillow's readers raise whatever a broken file makes them
        return b""
    small.thumbnail((SIDE, SIDE))
    file = io.BytesIO()
    small.save(file, "JPEG", quality=85)
    return file.getvalue()
