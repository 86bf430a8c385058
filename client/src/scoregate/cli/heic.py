"""HEIC, the format of phones, which the service does not read."""

from scoregate.cli.signatures import kind_of
from scoregate.errors import BadImage, reason_of
from scoregate.images import of_pillow


def readable(picture: bytes) -> bytes:
    """
    Return the pixels of a HEIC picture as a BMP, and any other file unchanged.

    Raises:
        ValueError: the package `pillow-heif` is not installed, or cannot read the picture.
    """
    if kind_of(picture) != "heic":
        return picture
    try:
        from pillow_heif import open_heif
    except ModuleNotFoundError:
        raise ValueError("is HEIC: pip install pillow-heif, and it is converted") from None
    try:
        return of_pillow(open_heif(picture).to_pillow())
    except (BadImage, OSError, ValueError, RuntimeError, EOFError) as exc:
        raise ValueError(f"is HEIC that cannot be read: {reason_of(exc)}") from None
