"""ICC profiles of RGB, with the tags that tell their colours."""

import struct
from collections.abc import Sequence

SRGB = ((0.4361, 0.2225, 0.0139), (0.3851, 0.7169, 0.0971), (0.1431, 0.0606, 0.7141))
DISPLAY_P3 = ((0.5151, 0.2412, -0.0011), (0.2919, 0.6922, 0.0419), (0.1572, 0.0666, 0.7841))


def profile(
    description: str, primaries: Sequence[Sequence[float]] = (), *, v4: bool = False, space: bytes = b"RGB "
) -> bytes:
    """A profile whose description is that of version 2, or 4; without primaries like one with tables."""
    tags = {b"desc": text_of_v4(description) if v4 else text_of_v2(description)}
    for name, colour in zip((b"rXYZ", b"gXYZ", b"bXYZ"), primaries, strict=False):
        tags[name] = b"XYZ \0\0\0\0" + struct.pack(">iii", *(round(part * 2**16) for part in colour))
    place, table, data = 128 + 4 + 12 * len(tags), b"", b""
    for name, content in tags.items():
        table += struct.pack(">4sII", name, place + len(data), len(content))
        data += content + bytes(-len(content) % 4)
    size = place + len(data)
    head = struct.pack(">I4xI4s4s4s", size, 0x04000000 if v4 else 0x02000000, b"mntr", space, b"XYZ ")
    return head.ljust(36, b"\0") + b"acsp".ljust(92, b"\0") + struct.pack(">I", len(tags)) + table + data


def text_of_v2(text: str) -> bytes:
    """A description in ASCII."""
    return b"desc\0\0\0\0" + struct.pack(">I", len(text) + 1) + text.encode() + b"\0" * 80


def text_of_v4(text: str) -> bytes:
    """A description in UTF-16, in one language."""
    return (
        b"mluc\0\0\0\0" + struct.pack(">II4sII", 1, 12, b"enUS", 2 * len(text), 28) + text.encode("utf-16-be")
    )
