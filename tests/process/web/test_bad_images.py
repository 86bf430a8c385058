"""Pictures of the formats that are decoded in a process of its own."""

import pytest

from tests.app.web import test_bad_images
from tests.support.bombs import flat
from tests.support.pictures import b64, item

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:::PIL"),  # as `models.images.image` does, but pytest resets filters
]


async def test_formats_are_what_the_operator_lists(serve):
    """In any case; the others are as unknown as text is."""
    images = {"a TIFF": flat(9, 9, "TIFF"), "a PNG": flat(9, 9, "PNG")}
    scored = {}
    async with serve(images={"formats": ["tiff", "WebP"]}) as client:
        for name, data in images.items():
            answer = await client.post("/score", json={"items": [item(image=b64(data))]})
            scored[name] = "vqascore" in answer.json()["results"][0]["scores"]

    assert {"a TIFF": True, "a PNG": False} == scored


def apart(cases: dict) -> dict:
    """The formats that are decoded so."""
    return {name: case for name, case in cases.items() if name in test_bad_images.APART}


BAD, GOOD = apart(test_bad_images.BAD), apart(test_bad_images.GOOD)


@pytest.mark.shared
@pytest.mark.parametrize(("image", "code"), BAD.values(), ids=BAD)
async def test_a_bad_image_is_its_items_error_under_every_metric(serve, image, code, caplog):
    """200; the neighbour scores as it does alone, and nothing of the image is told."""
    await test_bad_images.test_a_bad_image_is_its_items_error_under_every_metric(serve, image, code, caplog)


@pytest.mark.shared
@pytest.mark.parametrize(("image", "size"), GOOD.values(), ids=GOOD)
async def test_any_image_that_decodes_is_scored(serve, fakes, image, size):
    """Whatever its size or mode: the first frame's RGB values, not turned, alpha dropped."""
    await test_bad_images.test_any_image_that_decodes_is_scored(serve, fakes, image, size)
