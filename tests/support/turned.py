"""Pictures that are stored lying on their side, as phones save them."""

import PIL.Image

from tests.support.pictures import saved


def exif(orientation: int) -> PIL.Image.Exif:
    """Exif data that name an orientation."""
    found = PIL.Image.Exif()
    found[274] = orientation
    return found


def turned(format: str = "PNG", orientation: int = 6, size: tuple[int, int] = (16, 8)) -> bytes:
    """A picture whose left half is red and whose right half is blue, and which is to be shown turned."""
    width, height = size
    picture = PIL.Image.new("RGB", size, "blue")
    picture.paste("red", (0, 0, width // 2, height))
    return saved(picture, format, exif=exif(orientation))
