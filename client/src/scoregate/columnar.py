"""
Batches of Parquet and Arrow with bounded rows and bytes.

A few kilobytes can be gigabytes in memory: a value of a dictionary that all rows name, or packed bytes.  The
sizes come from metadata, before anything is unpacked.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from struct import unpack_from
from typing import Any, BinaryIO

ROWS_PER_BATCH = 64  # rows that are decoded together; they may hold pictures
BUFFER = 2**20  # bytes of a column of Parquet that are read together; `pre_buffer` would hold all
MAX_PACKING_RATIO = 16  # pictures hardly get smaller by packing
MAX_METADATA = 2**24  # bytes of a message

BYTES, FIXED, DELTA = "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY", "DELTA_BYTE_ARRAY"
DICTIONARY_PAGE = 2
SHARED_VALUE_TYPES = (
    "dictionary<",
    "_view",
    "run_end_encoded",
)  # types of which several rows may share one value


class RowsTooLargeError(ValueError):
    """Rows that take up too much memory."""


@dataclass(frozen=True)
class MemoryLimits:
    """
    The bytes that are in memory together.

    Attributes:
        batch: of the rows of a batch, unless one has more.
        unpacked: of a row group or a record batch, unless it has `MAX_PACKING_RATIO` of them in the file.
    """

    batch: int = 2**27
    unpacked: int = 2**28

    def check(self, unpacked: int, packed: int) -> None:
        """Raise `RowsTooLargeError` for bytes that are many, and were packed as no pictures are."""
        if unpacked > max(self.unpacked, MAX_PACKING_RATIO * packed):
            raise RowsTooLargeError(f"{packed} bytes of it would take {unpacked} in memory")


LIMITS = MemoryLimits()


def rows_in(batch: Any) -> Iterator[dict[str, Any]]:
    """Yield the rows of a record batch, one by one if they share values."""
    if not any(name in str(kind) for kind in batch.schema.types for name in SHARED_VALUE_TYPES):
        yield from batch.to_pylist()
        return
    for place in range(len(batch)):
        yield from batch[place : place + 1].to_pylist()


def has_more(cell: Any, limit: int) -> bool:
    """Return True if *cell* has a text or bytes of more than *limit*, also in lists and structs."""
    if isinstance(cell, str | bytes):
        return len(cell) > limit
    each = cell.values() if isinstance(cell, Mapping) else cell if isinstance(cell, list) else ()
    return any(has_more(part, limit) for part in each)


def parquet_batches(file: BinaryIO, reader: Any, limits: MemoryLimits) -> Iterator[Any]:
    """Yield the record batches of a Parquet file.  Raises `RowsTooLargeError`, and errors of pyarrow."""
    with reader.ParquetFile(file, buffer_size=BUFFER, pre_buffer=False) as opened:
        for number in range(opened.num_row_groups):
            group = opened.metadata.row_group(number)
            rows = rows_together(file, group, opened.schema, limits)
            yield from opened.iter_batches(rows, row_groups=[number])


def rows_together(file: BinaryIO, group: Any, schema: Any, limits: MemoryLimits) -> int:
    """Return the number of rows of a row group that are decoded together.  Raises `RowsTooLargeError`."""
    columns = [group.column(place) for place in range(group.num_columns)]
    limits.check(
        sum(column.total_uncompressed_size for column in columns),
        sum(column.total_compressed_size for column in columns),
    )
    rows = max(1, group.num_rows)
    row = sum(
        max(
            largest(file, column, schema.column(place)) * max(1, column.num_values // rows),
            column.total_uncompressed_size // rows,
        )
        for place, column in enumerate(columns)
    )
    return int(max(1, min(ROWS_PER_BATCH, limits.batch // max(1, row))))


def largest(file: BinaryIO, column: Any, declared: Any) -> int:
    """Return how large a value may be that the file does not have once for each row."""
    if column.physical_type == FIXED:
        return int(declared.length)  # memory of nulls, too
    if column.physical_type != BYTES:
        return 0
    if DELTA in column.encodings:  # a value has the first bytes of the one before
        return int(column.total_uncompressed_size)
    offsets = (column.dictionary_page_offset, column.data_page_offset)
    return dictionary_bytes(file, min(filter(None, offsets), default=0))


def dictionary_bytes(file: BinaryIO, offset: int) -> int:
    """Return the unpacked size of the dictionary at *offset*; 0 for another page."""
    file.seek(offset)
    header = iter(file.read(24))  # a struct of Thrift, whose first fields are the type and the unpacked size
    kind, size = (zigzag(header) for field in range(2) if next(header, 0) == 0x15)
    return size if kind == DICTIONARY_PAGE else 0


def zigzag(data: Iterator[int]) -> int:
    """Return a signed number of Thrift's compact protocol."""
    value = shift = 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    return (value >> 1) ^ -(value & 1)


# --- Arrow --------------------------------------------------------------------------------------

FILE = b"ARROW1\0\0"  # the file format has the bytes of a stream between this mark and its footer
CONTINUATION_MARK = b"\xff" * 4
IN_DICTIONARY, IN_BATCH = 2, 3  # types of messages


def arrow_batches(file: BinaryIO, again: BinaryIO, pyarrow: Any, limits: MemoryLimits) -> Iterator[Any]:
    """
    Yield the record batches of an Arrow file or stream, each of at most `ROWS_PER_BATCH` rows.

    Args:
        again: the file, opened once more.

    Raises:
        RowsTooLargeError: a batch and the dictionaries would take up too much memory.
        pyarrow.ArrowException: likewise `struct.error`: the file is damaged.
    """
    for each in (file, again):
        each.seek(len(FILE) if each.read(len(FILE)) == FILE else 0)
    sizes = batch_sizes(again)
    with pyarrow.ipc.open_stream(file) as stream:
        while True:
            limits.check(*next(sizes, (0, 0)))
            try:
                batch = stream.read_next_batch()
            except StopIteration:
                return
            batch.validate(full=True)  # pyarrow reads offsets without a check of their bounds
            yield from (
                batch[start : start + ROWS_PER_BATCH] for start in range(0, len(batch), ROWS_PER_BATCH)
            )


def batch_sizes(file: BinaryIO) -> Iterator[tuple[int, int]]:
    """Yield the bytes in memory and in the file of each batch, with those of all dictionaries before it."""
    kept = (0, 0)
    while head := file.read(4):
        size = int.from_bytes(file.read(4) if head == CONTINUATION_MARK else head, "little", signed=True)
        if size <= 0:  # the end
            return
        if size > MAX_METADATA:
            raise RowsTooLargeError(f"metadata of {size} bytes")
        message = ColumnarTable(file.read(size))
        begin, kind, packed = file.tell(), message.number(1, "<B"), message.number(3, "<q")
        if packed < 0:
            raise RowsTooLargeError(f"a message of {packed} bytes")
        if kind in (IN_DICTIONARY, IN_BATCH):
            content = message.table(2) if kind == IN_BATCH else message.table(2).table(1)
            total = kept[0] + unpacked_bytes(file, begin, content), kept[1] + packed
            if kind == IN_BATCH:
                yield total
            else:
                kept = total
        file.seek(begin + packed)


def unpacked_bytes(file: BinaryIO, begin: int, batch: "ColumnarTable") -> int:
    """Return the bytes in memory of a record batch whose buffers are from *begin* on."""
    total, (start, count) = 0, batch.vector(2)
    for place in range(start, start + 16 * count, 16):
        offset, length = unpack_from("<qq", batch.data, place)
        if batch.has(3) and length >= 8:  # compressed: the unpacked size comes first, -1 if it is not packed
            file.seek(begin + offset)
            length = max(length, *unpack_from("<q", file.read(8)))
        total += length
    return total


class ColumnarTable:
    """A table of FlatBuffers.  Its methods raise `struct.error` where the data ends before."""

    def __init__(self, data: bytes, place: int | None = None) -> None:
        self.data = data
        self._place = unpack_from("<I", data)[0] if place is None else place

    def has(self, field: int) -> int:
        """Return the position of a field; 0 if the table does not have it."""
        fields = self._place - unpack_from("<i", self.data, self._place)[0]
        [size] = unpack_from("<H", self.data, fields)
        [offset] = unpack_from("<H", self.data, fields + 4 + 2 * field) if 4 + 2 * field < size else (0,)
        return self._place + offset if offset else 0

    def number(self, field: int, form: str) -> int:
        """Return a number of a form of `struct`; 0 is the default."""
        place = self.has(field)
        return int(unpack_from(form, self.data, place)[0]) if place else 0

    def table(self, field: int) -> "ColumnarTable":
        """Return the table in a field."""
        place = self.has(field)
        return ColumnarTable(self.data, place + unpack_from("<I", self.data, place)[0])

    def vector(self, field: int) -> tuple[int, int]:
        """Return the position of the first entry of a list, and their number."""
        if not (place := self.has(field)):
            return 0, 0
        place += unpack_from("<I", self.data, place)[0]
        return place + 4, int(unpack_from("<I", self.data, place)[0])
