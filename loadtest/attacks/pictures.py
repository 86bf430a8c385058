"""Pictures for the attacks."""

import base64
import struct
from io import BytesIO

from PIL import Image


def jpeg(seed: int = 0) -> bytes:
    """Return a JPEG of 64x64 pixels of noise."""
    file = BytesIO()
    Image.effect_noise((64, 64), 50 + seed).convert("RGB").save(file, "JPEG")
    return file.getvalue()


def padded(size: int) -> bytes:
    """Return a JPEG padded to *size* bytes."""
    return jpeg().ljust(size, b"\0")


def progressive(seed: int) -> bytes:
    """Return a progressive JPEG of 49 million pixels with twenty superfluous scans of about 5 kB each."""
    file = BytesIO()
    Image.new("L", (7000, 7000), 100).save(file, "JPEG", progressive=True, quality=50)
    data = file.getvalue()
    last = data.rindex(b"\xff\xda")
    return data[:last] + data[last:-2] * 21 + b"\xff\xd9" + bytes([seed])


def gif(seed: int) -> bytes:
    """Return a GIF of 600 frames of 220x220 pixels."""
    head = b"GIF89a" + struct.pack("<HHBBB", 220, 220, 0x80, 0, 0) + b"\0\0\0\xff\xff\xff"
    frame = b"\x21\xf9\x04\x08\0\0\0\0\x2c" + struct.pack("<HHHHB", 0, 0, 220, 220, 0)
    comment = b"\x21\xfe\x01" + bytes([seed]) + b"\0"
    return head + (frame + b"\x02\x02\x44\x01\0") * 600 + comment + b"\x3b"


def base64_of(data: bytes) -> str:
    """Encode *data* as base64 text."""
    return base64.b64encode(data).decode()
