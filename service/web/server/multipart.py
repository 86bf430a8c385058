"""
A multipart body, read into memory, in UTF-8 only and within limits.

python_multipart splits delimiters, headers and data.  Starlette's form parser is not used: it decodes text by
any codec that a caller names, and some take quadratic time.
"""

from collections.abc import AsyncIterable, Collection
from typing import Any

import orjson
from python_multipart.multipart import MultipartParser, parse_options_header

from service.core.errors import Invalid, Malformed

REQUEST = "request"  # the part that holds the JSON
IMAGE = "image"  # the file parts of a form without JSON; only there may several have this name
PROMPT, METRICS = "prompt", "metrics"  # its fields; the names of metrics are separated by commas

MAX_FIELDS = 2  # parts without a filename
MAX_HEADER_BYTES = 4096  # of one part
MAX_NAME_BYTES = 256
MAX_OPTIONS = 16  # of a Content-Disposition
MAX_PADDING = 1024  # bytes of the whole body that are neither delimiter nor header nor data


async def read_multipart(
    content_type: str, chunks: AsyncIterable[bytes], max_files: int
) -> tuple[bytes, dict[str, bytes]]:
    """
    Return the JSON of the part `request`, and the bytes of every file part by name.

    A form without it, as `curl -F image=@cat.png -F prompt="a cat"` sends, is the JSON of its prompt with the
    parts `image` as its images.

    Args:
        content_type: the request's header, which names the boundary.
        max_files: the largest number of file parts.

    Raises:
        Malformed: broken, over a limit, in another charset, or without a part `request` or `image`.
        Invalid: it has a part `request` and fields of a form without one.
    """
    form = Form(content_type, max_files)
    async for chunk in chunks:
        form.feed(chunk)
    return form.read()


async def read_form(
    content_type: str, chunks: AsyncIterable[bytes], names: Collection[str], file: str
) -> tuple[dict[str, str], bytes | None]:
    """
    Return the fields of *names*, and the part *file*, None without one; other fields are left out.

    Raises:
        Malformed: broken, over a limit, or in another charset.
    """
    form = Form(content_type, 1, names, 2 * len(names))
    async for chunk in chunks:
        form.feed(chunk)
    return form.fields(), form.file(file)


class Form:
    """
    A parser that is fed the body in chunks of any size.

    Args:
        names: of the fields that are kept.
    """

    def __init__(
        self,
        content_type: str,
        max_files: int,
        names: Collection[str] = (REQUEST, PROMPT, METRICS),
        max_fields: int = MAX_FIELDS,
    ) -> None:
        boundary = utf8_options(content_type.encode("latin-1")).get(b"boundary")
        if not boundary:
            raise wrong("the Content-Type has no boundary")
        self._delimiter, self._delimiters = b"--" + boundary, 0
        self._max_files, self._files, self._fields = max_files, 0, 0
        self._names, self._max_fields = names, max_fields
        self._padding = MAX_PADDING
        self._parts: dict[str, bytes] = {}  # the files
        self._texts: dict[str, bytes] = {}
        self._images = 0  # files of the name `image`
        self._ended = False
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin_part,
                    "on_header_field": self._add_to_header,
                    "on_header_value": self._add_to_value,
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._end_headers,
                    "on_part_data": self._add_data,
                    "on_part_end": self._end_part,
                    "on_end": self._end,
                },
            )
        except ValueError as exc:
            raise wrong("the boundary is too long") from exc

    def feed(self, chunk: bytes) -> None:
        """
        Read on.  Raises `Malformed`.

        The parser reads delimiters and padding byte by byte, so both are limited.
        """
        if self._ended:
            return
        self._delimiters += chunk.count(self._delimiter)
        if self._delimiters > self._max_files + self._max_fields + 1:
            raise wrong("there are too many parts")
        self._padding -= len(chunk)
        try:
            self._parser.write(chunk)
        except ValueError as exc:
            raise wrong("it is broken") from exc
        if self._padding < 0 and not self._ended:
            raise wrong("there is too much text between its parts")

    def fields(self) -> dict[str, str]:
        """Return the fields, after the whole body was fed.  Raises `Malformed`."""
        self._check_end()
        return {name: decoded(field, f"the part '{name}'") for name, field in self._texts.items()}

    def file(self, name: str) -> bytes | None:
        """Return a file part, None without one."""
        return self._parts.get(name)

    def _check_end(self) -> None:
        if not self._ended:
            raise wrong("it ends before its last boundary")

    def read(self) -> tuple[bytes, dict[str, bytes]]:
        """Return the JSON and the files, after the whole body was fed.  Raises `Malformed`, `Invalid`."""
        self._check_end()
        fields = {name: self._texts.pop(name) for name in (PROMPT, METRICS) if name in self._texts}
        body = self._texts.pop(REQUEST, None)
        if body is None:
            return self._plain(fields), self._parts
        if fields:
            raise Invalid(f"give either the part '{REQUEST}', or '{IMAGE}' with '{PROMPT}'")
        if self._images > 1:
            raise wrong("two parts have the same name")
        return body, self._parts

    def _plain(self, fields: dict[str, bytes]) -> bytes:
        """Return the JSON of a form of plain fields.  Raises `Malformed`."""
        if not self._images:
            raise wrong(f"there is no part named '{REQUEST}', and no file part named '{IMAGE}'")
        if len(self._parts) > self._images:
            raise wrong(f"a file part that is not named '{IMAGE}' needs a part '{REQUEST}' that refers to it")
        texts = {name: decoded(field, f"the part '{name}'") for name, field in fields.items()}
        content: dict[str, Any] = {"images": [{"part": name} for name in self._parts]}
        if METRICS in texts:
            content[METRICS] = [name.strip() for name in texts[METRICS].split(",")]
        return orjson.dumps(content | {PROMPT: texts.get(PROMPT)})

    def _begin_part(self) -> None:
        self._padding += len(self._delimiter) + len(b"\r\n\r\n\r\n")
        self._headers: dict[bytes, bytes] = {}
        self._header, self._value = bytearray(), bytearray()
        self._header_bytes = 0

    def _add_to_header(self, chunk: bytes, start: int, end: int) -> None:
        self._count_header(end - start)
        self._header += chunk[start:end]

    def _add_to_value(self, chunk: bytes, start: int, end: int) -> None:
        self._count_header(end - start)
        self._value += chunk[start:end]

    def _count_header(self, size: int) -> None:
        self._padding += size
        self._header_bytes += size
        if self._header_bytes > MAX_HEADER_BYTES:
            raise wrong("the headers of a part are too long")

    def _end_header(self) -> None:
        self._count_header(len(b": \r\n"))
        self._headers[bytes(self._header).lower()] = bytes(self._value)
        self._header, self._value = bytearray(), bytearray()

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
        if self._files > self._max_files or self._fields > self._max_fields:
            raise wrong("there are too many parts")
        if is_file and self._name == IMAGE:
            self._images += 1
            self._name = IMAGE if self._images == 1 else f"{IMAGE} {self._images}"
        self._kept = is_file or self._name in self._names
        self._held = self._parts if is_file and self._name != REQUEST else self._texts
        if self._kept and self._name in self._held:
            raise wrong("two parts have the same name")
        if self._name == REQUEST:
            utf8_options(self._headers.get(b"content-type", b""))
        self._data = bytearray()

    def _add_data(self, chunk: bytes, start: int, end: int) -> None:
        self._padding += end - start
        if self._kept:
            self._data += chunk[start:end]

    def _end_part(self) -> None:
        if self._kept:
            self._held[self._name] = bytes(self._data)
        self._data = bytearray()

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
