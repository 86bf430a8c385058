"""Sources of the bytes of an image."""

import binascii
import re
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

import pybase64

from models.images.formats.mp4 import MP4
from service.core.errors import ImageTooLarge, NotBase64, UrlNotAllowed

MAX_HEAD = 256  # characters of a data: URI before its data, including padding
MAX_HINT = 4096  # characters of a text that gets a hint
HEAD_CHARACTERS = 16  # of base64: the twelve bytes that name the brand of an MP4
VIDEO_PATH = re.compile(r"\.(mp4|m4v)$", re.IGNORECASE)
URL = re.compile(r"https?://", re.IGNORECASE)
PATH = re.compile(r"^(file:|/|~/|\.{1,2}/|[A-Za-z]:\\)|\.\w{3,4}$")


@dataclass(slots=True, eq=False)
class Base64:
    """An image file as base64, or as a `data:` URI of base64; the text is dropped after decoding."""

    text: str


@dataclass(frozen=True, slots=True)
class Url:
    """The address of an image."""

    url: str


Source = bytes | Base64 | Url
"""An image file itself, or what stands for it."""


def size_of(source: Source) -> int:
    """Return the bytes of a file, or the characters of a text; 0 for an address that has not been fetched."""
    match source:
        case Base64(text):
            return len(text)
        case Url():
            return 0
    return len(source)


def encoded_of(source: Source, max_bytes: int) -> bytes:
    """
    Return the bytes of an image file.

    Raises:
        NotBase64: a text is none.
        ImageTooLarge: a text is too long for *max_bytes*; files themselves have any size.
        UrlNotAllowed: it would have to be downloaded; if downloads are enabled, the loader has done so.
    """
    match source:
        case Base64(text):
            if len(text) > max_bytes * 4 // 3 + MAX_HEAD:
                raise ImageTooLarge(f"more than {max_bytes} bytes")
            return unbase64(text)
        case Url():
            raise UrlNotAllowed("this server does not download images; send the bytes")
    return source


def is_video(source: Source) -> bool:
    """Return True for an MP4 by its first bytes, or by the path of its URL."""
    match source:
        case Url():
            return VIDEO_PATH.search(urlsplit(source.url).path) is not None
        case Base64():
            start = source.text.find(",", 0, MAX_HEAD) + 1 if source.text.startswith("data:") else 0
            with suppress(binascii.Error, ValueError):
                return MP4.begins(binascii.a2b_base64(source.text[start : start + HEAD_CHARACTERS]))
            return False
    return MP4.begins(source)


def unbase64(text: str) -> bytes:
    """Return the bytes of base64 or of a `data:` URI of base64.  Raises `NotBase64`."""
    if text.startswith("data:"):
        head, comma, text = text.partition(",")
        if not comma or not head.endswith(";base64"):
            raise NotBase64("the data: URI does not hold base64")
    try:
        return pybase64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as exc:
        raise NotBase64(f"the image is not base64{hint(text)}") from exc


def hint(text: str) -> str:
    """Return a hint if *text* is probably a URL, a path or a prompt; else an empty string."""
    if len(text) > MAX_HINT:
        return ""
    if URL.match(text):
        return """: this looks like a URL; give it as {"url": "…"}"""
    if PATH.search(text):
        return ": this looks like a file's path; send the file's bytes"
    if " " in text.strip():
        return ": this looks like words; the prompt has a field of its own"
    return ""
