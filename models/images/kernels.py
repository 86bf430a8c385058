"""
The loops of the preprocessing, compiled by numba at import (ADR 0028).

They run without the GIL, on one thread, and share nothing.  A machine without a writable place for numba's
cache compiles at each start.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

FRACTION_BITS = 22  # Pillow's weights have this fraction
ROUNDING_HALF = 1 << (FRACTION_BITS - 1)
ROWS_AT_ONCE = 128  # they fit into the cache, and are long enough for vector instructions
WORDS_AT_ONCE = 64  # they are four lines of the cache
CHANNELS = 3
LANES = CHANNELS * ROWS_AT_ONCE

READ_WORDS = numba.types.Array(numba.uint32, 2, "A", readonly=True)
READ_BYTES = numba.types.Array(numba.uint8, 2, "C", readonly=True)
READ_TAPS = numba.types.Array(numba.int32, 2, "C", readonly=True)
READ_FILL = numba.types.Array(numba.int32, 1, "C", readonly=True)
READ_TABLE = numba.types.Array(numba.float32, 2, "C", readonly=True)
BYTES = numba.types.Array(numba.uint8, 2, "C")


def compiled(*arguments: Any) -> Callable[[Any], Any]:
    """Compile for these types of arguments, with numba's cache if it has a place to write to."""
    options = {"nogil": True, "boundscheck": False, "error_model": "numpy"}

    def compile(loops: Any) -> Any:
        try:
            return numba.njit(numba.void(*arguments), cache=True, **options)(loops)
        except RuntimeError:  # a read-only system
            return numba.njit(numba.void(*arguments), **options)(loops)

    return compile


@compiled(READ_BYTES, READ_TAPS, READ_TAPS, READ_FILL, BYTES)
def blend(
    lines: np.ndarray, spans: np.ndarray, weights: np.ndarray, fill: np.ndarray, blended: np.ndarray
) -> None:
    """
    Write weighted sums of *lines*, rounded to 8 bits.

    Args:
        lines: (N, L), uint8.
        spans: (n, 3), for each sum: its first line, its number of lines, and the weight of what lies outside.
        weights: (n, taps), in units of 2**-22.
        fill: (L,), the value outside.
        blended: (n, L) at least, uint8.
    """
    length = lines.shape[1]
    sums = np.empty(length, np.int32)
    for number in range(spans.shape[0]):
        first, count, outside = spans[number]
        weight = weights[number]
        for i in range(length):
            sums[i] = np.int32(ROUNDING_HALF) + outside * fill[i]
        tap = 0
        while tap + 4 <= count:  # four lines at a time: a fourth of the loads and stores of the sums
            at = first + tap
            a, b, c, d = lines[at], lines[at + 1], lines[at + 2], lines[at + 3]
            wa, wb, wc, wd = weight[tap], weight[tap + 1], weight[tap + 2], weight[tap + 3]
            for i in range(length):
                sums[i] += (
                    np.int32(a[i]) * wa + np.int32(b[i]) * wb + np.int32(c[i]) * wc + np.int32(d[i]) * wd
                )
            tap += 4
        while tap < count:
            a, wa = lines[first + tap], weight[tap]
            for i in range(length):
                sums[i] += np.int32(a[i]) * wa
            tap += 1
        line = blended[number]
        for i in range(length):
            line[i] = np.uint8(min(max(sums[i] >> FRACTION_BITS, 0), 255))


@compiled(READ_WORDS, READ_TAPS, READ_TAPS, READ_FILL, numba.types.Array(numba.uint32, 3, "C"))
def blend_columns(
    pixels: np.ndarray, spans: np.ndarray, weights: np.ndarray, fill: np.ndarray, planes: np.ndarray
) -> None:
    """
    Write weighted sums of columns, as `blend` does for lines.

    Args:
        pixels: (H, W) words of red, green, blue and a byte that is not used.
        fill: (384,), each channel's value outside, 128 times.
        planes: (H, 3, ceil(n / 4)) words of four columns each.
    """
    height, width = pixels.shape
    words = np.empty((WORDS_AT_ONCE, ROWS_AT_ONCE), np.uint32)
    columns = np.empty((width, LANES), np.uint8)
    blended = np.empty((4 * planes.shape[2], LANES), np.uint8)
    packed = np.empty(LANES, np.uint32)
    for top in range(0, height, ROWS_AT_ONCE):
        rows = min(ROWS_AT_ONCE, height - top)
        for left in range(0, width, WORDS_AT_ONCE):
            right = min(width, left + WORDS_AT_ONCE)
            for row in range(rows):
                line = pixels[top + row]
                for x in range(left, right):
                    words[x - left, row] = line[x]
            for x in range(left, right):
                word, column = words[x - left], columns[x]
                for row in range(ROWS_AT_ONCE):
                    column[row] = np.uint8(word[row] & 255)
                for row in range(ROWS_AT_ONCE):
                    column[ROWS_AT_ONCE + row] = np.uint8((word[row] >> 8) & 255)
                for row in range(ROWS_AT_ONCE):
                    column[2 * ROWS_AT_ONCE + row] = np.uint8((word[row] >> 16) & 255)
        blend(columns, spans, weights, fill, blended)
        for four in range(planes.shape[2]):
            a, b, c, d = (
                blended[4 * four],
                blended[4 * four + 1],
                blended[4 * four + 2],
                blended[4 * four + 3],
            )
            for i in range(LANES):
                packed[i] = (
                    np.uint32(a[i])
                    | np.uint32(b[i]) << np.uint32(8)
                    | np.uint32(c[i]) << np.uint32(16)
                    | np.uint32(d[i]) << np.uint32(24)
                )
            for channel in range(CHANNELS):
                for row in range(rows):
                    planes[top + row, channel, four] = packed[channel * ROWS_AT_ONCE + row]


@compiled(READ_BYTES, READ_TABLE, numba.types.Array(numba.float32, 2, "C"))
def look_up(planes: np.ndarray, table: np.ndarray, numbers: np.ndarray) -> None:
    """
    Write the number of each byte.

    Args:
        planes: (N, L), uint8; of red, green and blue in turn.
        table: (3, 256), of each channel.
        numbers: (N, L), float32.
    """
    for plane in range(planes.shape[0]):
        line, number_of, found = planes[plane], table[plane % CHANNELS], numbers[plane]
        for i in range(planes.shape[1]):
            found[i] = number_of[line[i]]
