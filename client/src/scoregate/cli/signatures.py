"""The format of a picture file, by its first bytes."""

STARTS = {
    b"\xff\xd8\xff": "jpeg",
    b"\x89PNG\r\n": "png",
    b"GIF8": "gif",
    b"II*\0": "tiff",
    b"MM\0*": "tiff",
    b"II+\0": "tiff",
    b"MM\0+": "tiff",
}
BRANDS = {
    "avif": (b"avif", b"avis", b"mif1", b"msf1"),
    "heic": (b"hei", b"hev"),
    "mp4": (b"iso", b"mp4", b"avc1", b"M4V "),
}


def kind_of(picture: bytes) -> str:
    """Return the format by its MIME subtype; empty if it is not a picture or a film."""
    if picture[:4] == b"RIFF" and picture[8:12] == b"WEBP":
        return "webp"
    if picture[:2] == b"BM" and not any(picture[6:10]):  # two letters alone may begin any text
        return "bmp"
    if picture[4:8] == b"ftyp":
        return next((kind for kind, brands in BRANDS.items() if picture[8:12].startswith(brands)), "")
    return next((kind for start, kind in STARTS.items() if picture.startswith(start)), "")
