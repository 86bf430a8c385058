"""
ICC profiles: whether the colours of a picture are those of sRGB.

https://www.color.org/specification/ICC.1-2022-05.pdf, sections 7, 9.2 and 10
"""

import struct
from collections.abc import Mapping

MAX_PROFILE_BYTES = 2**16  # a profile without tables has 500 to 4,000
MAX_TAGS = 100
TAG_COUNT_OFFSET = 128  # the number of tags stands behind the header
TAG = struct.Struct(">4sII")  # its signature, its place and its size
XYZ = struct.Struct(">iii")  # parts of 65536 stand behind eight bytes of a type
# IEC 61966-2-1 and the profiles of all writers have them for sRGB, adapted to D50.
PRIMARIES = {
    b"rXYZ": (0.4361, 0.2225, 0.0139),
    b"gXYZ": (0.3851, 0.7169, 0.0971),
    b"bXYZ": (0.1431, 0.0606, 0.7141),
}
PRIMARIES_TOLERANCE = 0.005  # writers round; the primaries of Display P3 differ by 0.08
SRGB_NAMES = (b"srgb", b"sgrey", b"sgray")
MAX_NAME_BYTES = 256


def is_other(profile: bytes) -> bool:
    """
    Return True for a profile of other colours than those of sRGB, or one that cannot be read.

    Its primaries decide; if it has none, as for grey and CMYK, its description.
    """
    try:
        places = tags(profile)
        if PRIMARIES.keys() <= places.keys():
            return not all(
                abs(found / 2**16 - expected) <= PRIMARIES_TOLERANCE
                for name, colour in PRIMARIES.items()
                for found, expected in zip(XYZ.unpack_from(profile, places[name][0] + 8), colour, strict=True)
            )
        start, size = places[b"desc"]
    except (LookupError, struct.error):
        return True
    text = profile[start : start + min(size, MAX_NAME_BYTES)]
    described = text.replace(b"\0", b"").lower()  # it may be UTF-16
    return not any(name in described for name in SRGB_NAMES)


def tags(profile: bytes) -> Mapping[bytes, tuple[int, int]]:
    """Return place and size of each tag.  Raises `struct.error` for a truncated profile."""
    [count] = struct.unpack_from(">I", profile, TAG_COUNT_OFFSET)
    entries = (
        TAG.unpack_from(profile, TAG_COUNT_OFFSET + 4 + TAG.size * n) for n in range(min(count, MAX_TAGS))
    )
    return {name: (place, size) for name, place, size in entries}
