"""JPEG.  ITU-T T.81, annex B"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from models.images.formats.contract import Format, Header, ImageError, Unseen, header, joined
from models.images.formats.icc import MAX_PROFILE_BYTES, is_other
from models.images.formats.tiff import EXIF_SIGNATURE, of_exif

# Marks without data; all others are followed by the length of their segment.
EMPTY_MARKS = {0x01, 0xD8, 0xD9}
FRAME_MARKS = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}
PROGRESSIVE_MARKS = {0xC2, 0xC6, 0xCA, 0xCE}
TABLE_MARKS = {0xC4, 0xCC, 0xDB, 0xDD}  # Huffman, arithmetic, quantisation, restarts
END, SCAN, APP1, APP2 = 0xD9, 0xDA, 0xE1, 0xE2
ICC_SIGNATURE = b"ICC_PROFILE\0"  # the number of a part and that of all parts follow
COLOUR_SIGNATURES = {0xE0: b"JFIF\0", 0xEE: b"Adobe"}  # marks of the components' colour space

# It matches from the end of a segment to the next mark, over the data of a scan, and never backtracks.
NEXT_MARK = re.compile(rb"[^\xff]*+(?:\xff++[\x00\xd0-\xd7][^\xff]*+)*+\xff++(.)", re.DOTALL)
MAX_SEGMENTS = 2_000  # a profile of 32 MiB takes 500
MAX_TABLE_BYTES = 2**18  # a usual file has less than 2,000
MAX_SCANS = 32  # a usual progressive file has ten; each goes over all pixels

Segment = tuple[int, int, int]  # its mark, its start, its end


@dataclass(frozen=True, slots=True)
class Head:
    """The segments to keep before the first scan, among them the *frame*, and the *scan* itself."""

    kept: list[Segment]
    frame: Segment
    scan: Segment

    def in_several_scans(self, encoded: bytes) -> bool:
        """Return True if the first scan is not the whole picture."""
        components, in_scan = encoded[self.frame[1] + 9], encoded[self.scan[1] + 4]
        return self.frame[0] in PROGRESSIVE_MARKS or in_scan < components


def header_of(encoded: bytes) -> Header:
    """Read the size from the frame; for several scans the memory includes all coefficients."""
    found = head(encoded)
    start = found.frame[1]
    height, width = (int.from_bytes(encoded[at : at + 2], "big") for at in (start + 5, start + 7))
    found_header = header("JPEG", width, height)
    if not found.in_several_scans(encoded):
        return found_header
    memory = width * height * 4 + coefficients(encoded, start, width, height)
    return replace(found_header, memory=max(found_header.memory, memory))


def coefficients(encoded: bytes, start: int, width: int, height: int) -> int:
    """Return the size of a frame's coefficients: two bytes each, in whole blocks."""
    factors = [divmod(encoded[start + 11 + 3 * n], 16) for n in range(encoded[start + 9])]
    across, down = max(1, *(x for x, _ in factors)), max(1, *(y for _, y in factors))
    units = -(-width // (8 * across)) * -(-height // (8 * down))
    return units * sum(2 * 64 * x * y for x, y in factors)


def plain(encoded: bytes) -> bytes:
    """
    Keep what the decoder uses: tables, the frame, the scans, and the two marks of colour spaces.

    Removes Exif, profiles, comments and thumbnails.  Raises `ImageError` for more tables or scans than any
    encoder writes.
    """
    found = head(encoded)
    if sum(end - start for _, start, end in found.kept) > MAX_TABLE_BYTES:
        raise ImageError("the JPEG image has too many tables")
    if found.in_several_scans(encoded):
        scans = 1 + sum(kind == SCAN for kind, _, _ in segments(encoded, found.scan[2]))
        if scans > MAX_SCANS:
            raise ImageError(f"the JPEG image has more than {MAX_SCANS} scans")
    ranges = [(start, end) for _, start, end in [*found.kept, found.scan]]
    return joined(encoded, [(0, 2), *ranges, (found.scan[2], len(encoded))])


def unseen(encoded: bytes) -> Unseen:
    """Read the Exif segment and the profile before the first scan."""
    exif, profile = b"", b""
    for kind, start, end in segments(encoded, 2):
        data = start + 4
        if kind == APP1 and not exif and encoded[data : data + len(EXIF_SIGNATURE)] == EXIF_SIGNATURE:
            exif = encoded[data:end]
        elif (
            kind == APP2
            and encoded[data : data + len(ICC_SIGNATURE)] == ICC_SIGNATURE
            and len(profile) < MAX_PROFILE_BYTES
        ):
            profile += encoded[data + len(ICC_SIGNATURE) + 2 : end]  # its parts are in order
        if kind == SCAN:
            break
    return Unseen(of_exif(exif) if exif else 1, profile=bool(profile) and is_other(profile))


def head(encoded: bytes) -> Head:
    """Read the segments before the first scan.  Raises `ImageError` unless one of them is a frame."""
    kept, frames = list[Segment](), list[Segment]()
    for segment in segments(encoded, 2):
        kind, start, _ = segment
        if kind in FRAME_MARKS:
            frames.append(segment)
        if (
            kind in FRAME_MARKS
            or kind in TABLE_MARKS
            or encoded[start + 4 : start + 9] == COLOUR_SIGNATURES.get(kind)
        ):
            kept.append(segment)
        if kind == SCAN and len(frames) == 1:
            return Head(kept, frames[0], segment)
        if kind in (SCAN, END):
            break
    raise ImageError("the JPEG image has no frame that can be decoded")


def segments(encoded: bytes, at: int) -> Iterator[Segment]:
    """Yield mark, start and end of each segment from *at* on.  Raises `ImageError` for too many."""
    for _ in range(MAX_SEGMENTS):
        mark = NEXT_MARK.match(encoded, at)
        if mark is None:
            return
        kind, start, at = mark[1][0], mark.end() - 2, mark.end()
        if kind not in EMPTY_MARKS:
            at += int.from_bytes(encoded[at : at + 2], "big")
        yield kind, start, at
        if kind == END:
            return
    raise ImageError(f"the JPEG image has more than {MAX_SEGMENTS} segments")


JPEG = Format("JPEG", (b"\xff\xd8\xff",), header_of, plain, unseen=unseen)
