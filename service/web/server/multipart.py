"""
A multipart body, read into memory, in UTF-8 only and within limits; with JSON, or with plain fields.

python_multipart splits delimiters, headers and data.  Starlette's form parser is not used: it decodes text by
any codec that a caller names, and some take quadratic time.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json
from python_multipart.multipart import MultipartParser, parse_options_header

from service.core.errors import Fault, Invalid, Malformed
from service.web.problems import MAX_FAULTS, pointer

REQUEST = "request"  # the part that holds the JSON
IMAGE = "image"  # the file parts of a form without JSON; only there may several have this name
METRICS = "metrics"  # a field of a form without JSON: names, separated by commas

IMAGES, ITEMS = "images", "items"  # lists of the JSON, in whose place a form has files
TEXTS = ("id", "prompt")  # any other field is JSON, or else a text

MAX_FIELDS = 32  # parts without a filename: twice the fields of a request
MAX_FIELD_BYTES = 64 * 2**10  # bytes of all fields but `request`: the event loop reads them
MAX_HEADERS, MAX_HEADER_BYTES = 8, 4096  # headers of a part, and bytes of a header
MAX_NAME_BYTES = 256
MAX_SHOWN = 64  # characters of a name that an error shows
MAX_OPTIONS = 16  # options of a Content-Disposition
MAX_PADDING = 1024  # bytes of the whole body that are neither delimiter nor header nor data


class Form:
    """
    A parser that is fed the body in chunks of any size.

    Args:
        content_type: the request's header, which names the boundary.
        max_files: the largest number of file parts.

    Raises:
        Malformed: there is no boundary, or a text in another charset.

    Attributes:
        images: names of the parts that were sent as `image`; those after the first get a number.
    """

    def __init__(self, content_type: str, max_files: int) -> None:
        boundary = utf8_options(content_type.encode("latin-1")).get(b"boundary")
        if not boundary:
            raise wrong("the Content-Type has no boundary")
        self._delimiter, self._delimiters = b"--" + boundary, 0
        self._max_files, self._files, self._fields = max_files, 0, 0
        self._room = MAX_FIELD_BYTES  # bytes of fields that may still come
        self._padding = MAX_PADDING
        self._parts: dict[str, bytes] = {}  # the files
        self._texts: dict[str, bytes] = {}
        self.images: list[str] = []
        self._limited = self._ended = False
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin_part,
                    "on_header_field": self._add_to_header,
                    "on_header_value": self._add_data,
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._end_headers,
                    "on_part_data": self._add_data,
                    "on_part_end": self._end_part,
                    "on_end": self._end,
                },
                max_header_count=MAX_HEADERS,
                max_header_size=MAX_HEADER_BYTES,
            )
        except ValueError as exc:
            raise wrong("the boundary is too long") from exc

    def feed(self, chunk: bytes) -> None:
        """
        Read on.  Raises `Malformed`.

        The parser limits headers.  It reads delimiters and padding byte by byte, so both are limited here.
        """
        if self._ended:
            return
        self._delimiters += chunk.count(self._delimiter)
        if self._delimiters > self._max_files + MAX_FIELDS + 1:
            raise wrong("there are too many parts")
        self._padding -= len(chunk)
        try:
            self._parser.write(chunk)
        except ValueError as exc:
            raise wrong("it is broken") from exc
        if self._padding < 0 and not self._ended:
            raise wrong("there is too much text between its parts")

    def fields(self) -> dict[str, str]:
        """Return the fields of a form that was read, without the part `request`.  Raises `Malformed`."""
        return {name: decoded(field, f"the part '{name}'") for name, field in self._texts.items()}

    def read(self) -> tuple[bytes | None, dict[str, bytes]]:
        """
        Return the part `request`, None without one, and the files, after the whole body was fed.

        Raises:
            Malformed: it ends too early, or two parts have the same name.
            Invalid: it has a part `request` and other fields.
        """
        if not self._ended:
            raise wrong("it ends before its last boundary")
        body = self._texts.pop(REQUEST, None)
        if body is not None and self._texts:
            detail = f"a form with a part '{REQUEST}' has no other fields; the part of a file has a filename"
            faults = [Fault(pointer([name]), "extra_forbidden", detail) for name in self._texts]
            raise Invalid(f"{faults[0].pointer}: {detail}", faults=faults)
        if body is not None and len(self.images) > 1:
            raise wrong(f"two parts are named '{IMAGE}'")
        return body, self._parts

    def _begin_part(self) -> None:
        self._padding += len(self._delimiter) + len(b"\r\n\r\n\r\n")
        self._headers: dict[bytes, bytes] = {}
        self._header, self._data = bytearray(), bytearray()

    def _add_to_header(self, chunk: bytes, start: int, end: int) -> None:
        self._padding += end - start
        self._header += chunk[start:end]

    def _add_data(self, chunk: bytes, start: int, end: int) -> None:
        """Add bytes to the value of a header, or to the part."""
        self._padding += end - start
        if self._limited:
            self._room -= end - start
            if self._room < 0:
                raise wrong(f"its fields are too long; send them as JSON, in a part '{REQUEST}'")
        self._data += chunk[start:end]

    def _end_header(self) -> None:
        self._padding += len(b": \r\n")
        self._headers[bytes(self._header).lower()] = bytes(self._data)
        self._header, self._data = bytearray(), bytearray()

    def _end_headers(self) -> None:
        disposition = self._headers.get(b"content-disposition", b"")
        if disposition.count(b";") > MAX_OPTIONS:
            raise wrong("a part has too many options")
        _, options = parse_options_header(disposition)
        name, is_file = options.get(b"name", b""), b"filename" in options
        if not 0 < len(name) <= MAX_NAME_BYTES:
            raise wrong(f"a part has no name, or one of more than {MAX_NAME_BYTES} bytes")
        self._name = decoded(name, "a part's name")
        self._files += is_file
        self._fields += not is_file
        if self._files > self._max_files or self._fields > MAX_FIELDS:
            raise wrong("there are too many parts")
        if is_file and self._name == IMAGE:
            self._name = f"{IMAGE} {len(self.images) + 1}" if self.images else IMAGE
            self.images.append(self._name)
        self._held = self._parts if is_file and self._name != REQUEST else self._texts
        self._limited = self._held is self._texts and self._name != REQUEST
        if self._name in self._held:
            many = "; give all metrics in one, separated by commas" if self._name == METRICS else ""
            raise wrong(f"two parts are named '{self._name[:MAX_SHOWN]}'{many}")
        if self._name == REQUEST:
            utf8_options(self._headers.get(b"content-type", b""))

    def _end_part(self) -> None:
        self._held[self._name] = bytes(self._data)
        self._data, self._limited = bytearray(), False

    def _end(self) -> None:
        self._ended = True


def utf8_options(content_type: bytes) -> dict[bytes, bytes]:
    """Return the parameters of a Content-Type.  Raises `Malformed` if its charset is not UTF-8."""
    _, options = parse_options_header(content_type)
    if options.get(b"charset", b"utf-8").lower() not in (b"utf-8", b"utf8"):
        raise wrong("text must be UTF-8; no other charset is read")
    return options


def decoded(text: bytes, what: str) -> str:
    """Decode a text of the form.  Raises `Malformed`, which names it as *what*."""
    try:
        return text.decode()
    except UnicodeDecodeError as exc:
        raise wrong(f"{what} is not UTF-8") from exc


def wrong(what: str) -> Malformed:
    """Build the error of a body that cannot be read."""
    return Malformed(f"multipart: {what}")


def content_of(
    fields: Mapping[str, str], images: Sequence[str], others: Sequence[str], wire: type[BaseModel]
) -> dict[str, Any]:
    """
    Return the content of a request of the type *wire*, whose validation follows.

    Args:
        images: names of the file parts that were sent as `image`.
        others: names of the other file parts.

    Raises:
        Invalid: *wire* has no such field, or a file is not named `image`; twenty of them are named.
        Malformed: there is no picture.
    """
    if faults := [*islice(faults_of(fields, others, wire), MAX_FAULTS)]:
        raise Invalid(f"{faults[0].pointer}: {faults[0].detail}", faults=faults)
    if not images or IMAGES not in wire.model_fields:
        raise wrong(f"there is no part named '{REQUEST}', and no file part named '{IMAGE}'")
    content = {name: value_of(name, text) for name, text in fields.items()}
    image_parts = [{"part": name} for name in images]
    if len(image_parts) == 1 and IMAGE in wire.model_fields:
        return {**content, IMAGE: image_parts[0]}
    return {**content, IMAGES: image_parts}


def faults_of(fields: Mapping[str, str], others: Sequence[str], wire: type[BaseModel]) -> Iterator[Fault]:
    """Yield a fault for each field that *wire* lacks, and for each file that is not named `image`."""
    valid = sorted({*wire.model_fields, REQUEST} - {IMAGES, ITEMS})
    for name in fields:
        if name == IMAGE:
            detail = f"has no filename; curl sends a file with -F {IMAGE}=@FILE"
            yield Fault(pointer([name]), "value_error", detail)
        elif name not in valid:
            yield Fault.unknown(pointer([name]), "extra_forbidden", "there is no such field", name, valid)
    for name in others:
        detail = f"a file that is not named '{IMAGE}' needs a part '{REQUEST}' that refers to it"
        yield Fault.unknown(pointer([name]), "extra_forbidden", detail, name, [IMAGE])


def value_of(name: str, text: str) -> Any:
    """Return the value of a field: its JSON, or *text* itself, which validation may refuse."""
    if name == METRICS:
        return [each.strip() for each in text.split(",")]
    if name in TEXTS:
        return text
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        return text
