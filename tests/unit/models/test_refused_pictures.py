"""What stays of a picture that is refused."""

import gc
import weakref

import PIL.Image
import pytest

from models.images.formats.contract import ImageError
from models.images.formats.decode import decode
from tests.support.bombs import flat


@pytest.mark.parametrize("encoded", [flat(300, 300, "GIF")[:-300], flat(300, 300, "JPEG")[:-99], b"GIF89a"])
def test_a_refusal_keeps_no_picture_alive(encoded, monkeypatch):
    """Neither the error nor its traceback holds on to the pixels, and no collector has to come for them."""
    alive: list[weakref.ref[PIL.Image.Image]] = []
    real = PIL.Image.open

    def opened(*args, **kwargs):
        picture = real(*args, **kwargs)
        alive.append(weakref.ref(picture))
        return picture

    monkeypatch.setattr(PIL.Image, "open", opened)
    gc.disable()
    try:
        with pytest.raises(ImageError) as error:
            decode(encoded)
        assert [] == [one for one in alive if one() is not None]
        assert error.value.__context__ is None
    finally:
        gc.enable()
