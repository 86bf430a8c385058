"""
ICC profiles: whether the colours of a picture are those of sRGB.

https://www.color.org/specification/ICC.1-2022-05.pdf, sections 7, 9.2 and 10
"""

import struct
from collections.abc import Mapping

MAX_PROFILE = 2**16  # bytes that are read; a profile without tables has 500 to 4,000
MAX_TAGS = 100
TAGS = 128  # place of their number, behind the header
TAG = struct.Struct(">4sII")  # its signature, its place and its size
XYZ = struct.Struct(">iii")  # in parts of 65536, behind eight bytes of a type
PRIMARIES = {  # of sRGB, adapted to D50, as IEC 61966-2-1 and the profiles of all writers have them
    b"rXYZ": (0.4361, 0.2225, 0.0139),
    b"gXYZ": (0.3851, 0.7169, 0.0971),
    b"bXYZ": (0.1431, 0.0606, 0.7141),
}
TOLERANCE = 0.005  # writers round; the primaries of Display P3 differ by 0.08
NAMES = (b"srgb", b"sgrey", b"sgray")
MAX_NAME = 256  # bytes


def is_other(profile: bytes) -> bool:
    """
    Return True for a profile of other colours than those of sRGB, or one that cannot be read.

    Its primaries decide; if it has none, as for grey and CMYK, its description.
    """
    try:
        places = tags(profile)
        if PRIMARIES.keys() <= places.keys():
            return not all(
                abs(found / 2**16 - expected) <= TOLERANCE
                for name, colour in PRIMARIES.items()
                for found, expected in zip(XYZ.unpack_from(profile, places[name][0] + 8), colour, strict=True)
            )
        start, size = places[b"desc"]
    except (LookupError, struct.error):
        return True
    described = profile[start : start + min(size, MAX_NAME)].replace(b"\0", b"").lower()  # of UTF-16, too
    return not any(name in described for name in NAMES)


def tags(profile: bytes) -> Mapping[bytes, tuple[int, int]]:
    """Return place and size of each tag.  Raises `struct.error` for a truncated profile."""
    [count] = struct.unpack_from(">I", profile, TAGS)
    entries = (TAG.unpack_from(profile, TAGS + 4 + TAG.size * n) for n in range(min(count, MAX_TAGS)))
    return {name: (place, size) for name, place, size in entries}
