"""Pictures that are broken, strange or too large: one item's error at most, never its neighbour's."""

import gc
import io
import json
from functools import partial

import PIL.Image
import pytest

from models.images.formats.mp4 import MP4
from models.images.formats.registry import FORMATS
from service.images.loader import ImageRef
from tests.costs.web.test_cost_of_bad_input import bomb, declared
from tests.support.app import decoded
from tests.support.bombs import flat, gif, lying_avif, run_length_bmp
from tests.support.pictures import b64, item, picture, pixels, png, saved, see_through

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:::PIL"),  # as `models.images.image` does, but pytest resets filters
]

METRICS = ["vqascore", "clipscore"]


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def data_of(image):
    """The picture of a case: those that take long to make are made by their test, not with the list."""
    return image() if callable(image) else image


BAD = {
    "not base64": ("no, it isn't", "not_base64"),
    "base64 of the web": ("-_-_", "not_base64"),
    "base64 without its padding": ("abcde", "not_base64"),
    "a surrogate": ("\ud800", "not_base64"),
    "letters beyond ASCII": ("éééé", "not_base64"),
    "data: without base64": ("data:image/png,abcd", "not_base64"),
    "data: without a comma": ("data:image/png;base64", "not_base64"),
    "data: that is not base64": ("data:image/png;base64,!", "not_base64"),
    "data: with nothing": ("data:image/png;base64,", "image_undecodable"),
    "empty": ("", "image_undecodable"),
    "a URL": ({"url": "https://example.org/a.png"}, "url_not_allowed"),
    "a URL of ours": ({"url": "file:///etc/passwd"}, "url_not_allowed"),
    "text": (b"hello, I am a picture", "image_undecodable"),
    "SVG": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image_undecodable"),
    "EPS": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "image_undecodable"),
    "half a JPEG": (half(saved(picture(), "JPEG")), "image_undecodable"),
    "half a PNG": (half(saved(picture(), "PNG")), "image_undecodable"),
    "half a WebP": (half(saved(picture(), "WEBP", lossless=True)), "image_undecodable"),
    "half a GIF": (half(saved(picture("P"), "GIF")), "image_undecodable"),
    "half a BMP": (half(saved(picture(), "BMP")), "image_undecodable"),
    "half a TIFF": (half(saved(picture(), "TIFF")), "image_undecodable"),
    "a header alone": (png()[:33], "image_undecodable"),
    "a wrong checksum": (png().replace(b"IDAT", b"IDAX"), "image_undecodable"),
    "30,000 x 30,000": (declared(30_000, 30_000), "image_too_large"),
    "a million x 1": (declared(1_000_000, 1), "image_too_large"),
    "2^31 x 2^31": (declared(2**31 - 1, 2**31 - 1), "image_too_large"),
    "0 x 0": (declared(0, 0), "image_undecodable"),
    "more pixels declared than there are": (declared(300, 300), "image_undecodable"),
    "a TIFF": (saved(picture(), "TIFF"), "image_undecodable"),
    "a BMP of runs": (run_length_bmp(300, 300), "image_undecodable"),
    "an AVIF that says another size": (partial(lying_avif, 3000, 3000, (16, 16)), "image_undecodable"),
    "a GIF whose frame is too large": (gif((8000, 8000)), "image_too_large"),
    "a GIF that is disposed of": (gif((65_535, 65_535)), "image_too_large"),
    "a decoder that needs more than all": (partial(lying_avif, 16, 16, (6000, 6000)), "image_too_large"),
    "too many bytes": (bytes(2 * 2**20), "image_too_large"),
    "too many bytes by far": (bytes(3 * 2**20), "image_too_large"),
}


def here(cases: dict) -> dict:
    """Without the formats that are decoded in a process of their own, which `tests/process/` sends."""
    return {name: case for name, case in cases.items() if name not in APART}


APART = (
    *("half a WebP", "an AVIF that says another size", "16 bits in a TIFF", "floats in a TIFF"),
    *("CMYK in a TIFF", "an animated WebP", "a TIFF of two pages", "AVIF"),
)


@pytest.mark.shared
@pytest.mark.parametrize(("image", "code"), here(BAD).values(), ids=here(BAD))
async def test_a_bad_image_is_its_items_error_under_every_metric(serve, image, code, caplog):
    """200; the neighbour scores as it does alone, and nothing of the image is told."""
    image = data_of(image)
    given = b64(image) if isinstance(image, bytes) else image
    async with serve(images={"max_bytes": 2**20}) as client:
        body = {"items": [item("a dog"), item("a cat", given)], "metrics": METRICS}
        text = json.dumps(body)  # which can say a surrogate
        answer = await client.post("/score", content=text, headers={"Content-Type": "application/json"})
        alone = await client.post("/score", json={**body, "items": body["items"][:1]})

    good, bad = answer.json()["results"]
    assert 200 == answer.status_code
    assert answer.json()["partial"]
    assert {} == bad["scores"]
    assert [code, code] == [bad["errors"][metric]["code"] for metric in METRICS]
    assert alone.json()["results"][0]["scores"] == good["scores"]
    assert "errors" not in good
    for told in (answer.text, caplog.text):
        assert "example.org" not in told
        assert "passwd" not in told


@pytest.mark.shared
async def test_a_bad_image_among_frames_is_its_items_error(serve):
    """Without every frame there is no mean."""
    async with serve() as client:
        items = [item(image=[b64(png()), "!"]), item()]
        bad, good = (await client.post("/score", json={"items": items})).json()["results"]

    assert "not_base64" == bad["errors"]["vqascore"]["code"]
    assert "vqascore" in good["scores"]


@pytest.mark.shared
async def test_an_empty_file_part_is_its_items_error(serve):
    """Multipart carries bytes, and bytes may be none."""
    text = json.dumps({"items": [item(image={"part": "p"})]})
    async with serve() as client:
        answer = await client.post("/score", data={"request": text}, files={"p": ("p.png", b"")})

    assert 200 == answer.status_code
    assert "image_undecodable" == answer.json()["results"][0]["errors"]["vqascore"]["code"]


def rotated() -> bytes:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees
    return saved(picture(), "JPEG", exif=exif)


def palette(**options) -> bytes:
    return saved(picture().quantize(16), "PNG", **options)


def animated(format: str) -> bytes:
    frames = [picture("RGB"), PIL.Image.new("RGB", (40, 30), "green")]
    return saved(frames[0], format, save_all=True, append_images=frames[1:], lossless=True)


GOOD = {
    "1 x 1": (png(size=(1, 1)), (1, 1)),
    "300 x 1": (png(size=(300, 1)), (300, 1)),
    "1 x 300": (png(size=(1, 300)), (1, 300)),
    "16,000 x 1": (png(size=(16_000, 1)), (16_000, 1)),
    "CMYK": (saved(picture("CMYK"), "JPEG"), (40, 30)),
    "grey": (saved(picture("L"), "JPEG"), (40, 30)),
    "grey and alpha": (saved(picture("LA"), "PNG"), (40, 30)),
    "black and white": (saved(picture("1"), "PNG"), (40, 30)),
    "16 bits": (saved(picture("I;16"), "PNG"), (40, 30)),
    "16 bits in a TIFF": (saved(picture("I;16"), "TIFF"), (40, 30)),
    "floats in a TIFF": (saved(picture("F"), "TIFF"), (40, 30)),
    "CMYK in a TIFF": (saved(picture("CMYK"), "TIFF"), (40, 30)),
    "palette": (palette(), (40, 30)),
    "palette, one colour transparent": (palette(transparency=3), (40, 30)),
    "palette, a table of alphas": (palette(transparency=bytes(range(16))), (40, 30)),
    "alpha": (see_through(), (40, 30)),
    "an animated GIF": (animated("GIF"), (40, 30)),
    "an animated WebP": (animated("WEBP"), (40, 30)),
    "an animated PNG": (animated("PNG"), (40, 30)),
    "a TIFF of two pages": (animated("TIFF"), (40, 30)),
    "a rotated JPEG": (rotated(), (40, 30)),
    "a zTXt bomb": (partial(bomb, 50), (1, 1)),
    "an iTXt bomb": (partial(bomb, 50, b"iTXt"), (1, 1)),
    "an iCCP bomb": (partial(bomb, 50, b"iCCP"), (1, 1)),
    "progressive": (saved(picture(), "JPEG", progressive=True), (40, 30)),
    "AVIF": (saved(picture(), "AVIF"), (40, 30)),
    "broken EXIF": (saved(picture(), "JPEG", exif=b"Exif\0\0II*\0\x08\0\0\0\x09\0"), (40, 30)),
    "bytes after the end": (png() + b"<html>", (16, 16)),
}


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.parametrize(("image", "size"), here(GOOD).values(), ids=here(GOOD))
async def test_any_image_that_decodes_is_scored(serve, fakes, image, size):
    """Whatever its size or mode: the first frame's RGB values, not turned, alpha dropped."""
    image = data_of(image)
    async with serve(images={"formats": [name for name in FORMATS if name != MP4.name]}) as client:
        answer = await client.post("/score", json={"items": [item(image=b64(image))], "metrics": METRICS})

    assert set(METRICS) == answer.json()["results"][0]["scores"].keys()
    seen = pixels(fakes["vqa"].calls[0].image)
    assert ("RGB", size) == (seen.mode, seen.size)
    assert reference(image).tobytes() == seen.tobytes()


def reference(image: bytes) -> PIL.Image.Image:
    """The RGB values that Pillow gives for the whole file."""
    with PIL.Image.open(io.BytesIO(without_texts(image))) as opened:
        opened.load()
        opened.info.pop("transparency", None)
        return opened.convert("RGB")


def without_texts(image: bytes) -> bytes:
    """The bombs, disarmed: Pillow refuses them."""
    return declared(1, 1) if len(image) > 40_000 and image.startswith(b"\x89PNG") else image


async def test_a_picture_is_decoded_once_for_all_its_metrics(serve):
    """By the first model that looks at it, and no more often than that."""
    async with serve() as client:
        await client.post("/score", json={"items": [item()], "metrics": METRICS})
        assert 1 == decoded(client)


async def test_decoded_pixels_in_flight_are_bounded(serve, fakes):
    """A budget of two pictures: sixteen of them are scored, never more than two held at once."""
    sizes = {"max_pixels": 60_000, "decoded_budget_mb": 1}  # 8 bytes a pixel while decoding
    image = b64(png(size=(250, 240)))
    async with serve(images=sizes) as client:
        answer = await client.post("/score", json={"items": [item(f"{n}", image) for n in range(16)]})

    assert not answer.json()["partial"]
    assert 16 == len(fakes["vqa"].calls)
    assert max(len(batch) for batch in fakes["vqa"].batches) <= 2


async def test_the_largest_image_allowed_fits_the_budget(serve):
    """One picture alone may take nearly all of it, and never waits for more than there is."""
    async with serve(images={"max_pixels": 130_000, "decoded_budget_mb": 1}) as client:
        body = {"items": [item(image=b64(png(size=(400, 325))))], "timeout_ms": 20_000}
        answer = await client.post("/score", json=body)

    assert 200 == answer.status_code
    assert "vqascore" in answer.json()["results"][0]["scores"]


@pytest.mark.parametrize(
    "image",
    [
        gif((8000, 8000)),
        b"text",
        flat(300, 300, "JPEG")[:-99],
        partial(lying_avif, 900, 900, (16, 16)),
        png(),
    ],
    ids=["too large", "no image", "broken off", "lying", "scored"],
)
async def test_nothing_keeps_a_picture_once_its_request_is_answered(serve, image):
    """Neither an error nor a circle of references, which only the collector would find, and late."""
    data = data_of(image)
    async with serve() as client:
        gc.collect()
        gc.disable()
        try:
            await client.post("/score", json={"items": [item(image=b64(data))] * 40, "metrics": METRICS})
            kept = ImageRef(data)
            assert [kept] == [each for each in gc.get_objects() if type(each) is ImageRef]
        finally:
            gc.enable()
