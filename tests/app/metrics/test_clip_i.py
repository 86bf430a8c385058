"""CLIP-I: the likeness of an image to the item's references."""

import numpy as np
import pytest

from models.core.calls import ImageCall, TextCall
from models.core.outcomes import Embedding
from tests.support.pictures import b64, item, pixels, png
from tests.support.questions import scored

pytestmark = pytest.mark.anyio
REFERENCES = [b64(png(colour)) for colour in ("lime", "blue", "yellow")]


@pytest.fixture
def sees(fakes):
    """Has the model embed a picture as the direction of its colour."""

    def embedded(call):
        vector = np.array(pixels(call.image).getpixel((0, 0)), np.float32)
        return Embedding(vector / np.linalg.norm(vector))

    fakes["clip"].answer = lambda call: (
        embedded(call) if isinstance(call, ImageCall) else type(fakes["clip"]).answer(fakes["clip"], call)
    )


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, 0.5**0.5 / 3), ({"of_references": "mean"}, 0.5**0.5 / 3), ({"of_references": "closest"}, 0.5**0.5)],
)
async def test_the_score_is_the_mean_cosine_or_the_largest(serve, sees, options, expected):
    """Red is orthogonal to lime and blue, and half of yellow."""
    async with serve() as client:
        result = await scored(client, "clip_i", item(references=REFERENCES), **options)

    assert expected == pytest.approx(result["scores"]["clip_i"])
    assert [0, 0, 0.5**0.5] == pytest.approx(result["details"]["clip_i"]["cosines"])


async def test_the_prompt_is_not_embedded(serve, fakes):
    """A second prompt with the same pictures is a cache hit."""
    async with serve() as client:
        first = await scored(client, "clip_i", item("a red dog", references=REFERENCES[:1]))
        second = await scored(client, "clip_i", item("a blue cat", references=REFERENCES[:1]))

    assert first["scores"] == second["scores"]
    assert ["miss", "hit"] == [result["cache"]["clip_i"] for result in (first, second)]
    assert not [call for call in fakes["clip"].calls if isinstance(call, TextCall)]


async def test_an_item_without_references_is_an_error(serve, fakes):
    """The model is not called."""
    async with serve() as client:
        result = await scored(client, "clip_i", item())

    error = result["errors"]["clip_i"]
    assert ({}, "missing_picture") == (result["scores"], error["code"])
    assert "references" in error["detail"]
    assert [] == fakes["clip"].calls


async def test_models_lists_its_range_and_its_other_pictures(serve):
    async with serve() as client:
        listed = (await client.get("/models")).json()["metrics"]["clip_i"]

    assert ([-1, 1], ["references"], ["clip"]) == (listed["range"], listed["uses"], listed["roles"])
    assert "references" == listed["needs"]
