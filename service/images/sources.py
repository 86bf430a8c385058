"""Where the bytes of a picture come from."""

import binascii
import re
from dataclasses import dataclass
from typing import Protocol

import pybase64

from service.core.errors import ImageTooLarge, NotBase64, UrlNotAllowed

MAX_HEAD = 256  # characters of a data: URI before its data, with the padding
MAX_MISTAKEN = 4096  # characters of what somebody may have taken for a picture
URL = re.compile(r"https?://", re.IGNORECASE)
PATH = re.compile(r"^(file:|/|~/|\.{1,2}/|[A-Za-z]:\\)|\.\w{3,4}$")


class Source(Protocol):
    """
    Something that holds a picture file, or tells where one lies.

    Attributes:
        size: of what it holds, in bytes or characters.
    """

    @property
    def size(self) -> int: ...

    def read(self, max_bytes: int) -> bytes:
        """The bytes of the picture file.  Raises `BadImage`, one of its kinds."""
        ...


@dataclass(frozen=True, slots=True)
class Encoded:
    """A picture file as it is."""

    data: bytes

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.data)

    def read(self, max_bytes: int) -> bytes:
        """The file.  Raises `ImageTooLarge`."""
        if len(self.data) > max_bytes:
            raise ImageTooLarge(f"{len(self.data)} bytes; at most {max_bytes}")
        return self.data


@dataclass(slots=True, eq=False)
class Base64:
    """A picture file as base64, or as a `data:` URI that holds base64, until it is decoded and let go."""

    text: str

    @property
    def size(self) -> int:
        """Characters."""
        return len(self.text)

    def read(self, max_bytes: int) -> bytes:
        """The file.  Raises `NotBase64` or `ImageTooLarge`."""
        if len(self.text) > max_bytes * 4 // 3 + MAX_HEAD:
            raise ImageTooLarge(f"more than {max_bytes} bytes")
        return Encoded(unbase64(self.text)).read(max_bytes)

    def let_go(self) -> None:
        """Hold no text any more, whoever holds this."""
        self.text = ""


@dataclass(frozen=True, slots=True)
class Url:
    """An address that a picture lies at."""

    url: str

    @property
    def size(self) -> int:
        """None of the file."""
        return 0

    def read(self, max_bytes: int) -> bytes:
        """Raises `UrlNotAllowed`: whoever fetches it has its bytes in an `Encoded`."""
        raise UrlNotAllowed("this server does not download images; send the bytes")


def unbase64(text: str) -> bytes:
    """The bytes of base64 or of a `data:` URI that holds some.  Raises `NotBase64`."""
    if text.startswith("data:"):
        head, comma, text = text.partition(",")
        if not comma or not head.endswith(";base64"):
            raise NotBase64("the data: URI does not hold base64")
    try:
        return pybase64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise NotBase64(f"the image is not base64{looks_like(text)}") from exc


def looks_like(text: str) -> str:
    """A hint for those who put something else where base64 belongs; empty where it looks like nothing."""
    if len(text) > MAX_MISTAKEN:
        return ""
    if URL.match(text):
        return """: this looks like a URL; give it as {"url": "…"}"""
    if PATH.search(text):
        return ": this looks like a file's path; send the file's bytes"
    if " " in text.strip():
        return ": this looks like words; the prompt has a field of its own"
    return ""
