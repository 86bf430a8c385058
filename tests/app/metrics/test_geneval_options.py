"""GenEval as a metric: the options of its released code."""

import numpy as np
import pytest

from models.core.calls import ImageCall
from tests.support.fake_objects import SIZE, detection, picture, scored
from tests.support.pictures import item

pytestmark = pytest.mark.anyio


async def test_the_constants_of_the_released_code_are_options(serve, detector):
    """Each of them changes what counts."""
    detector.found = (detection("dog", 0.2), detection("dog", 0.95, (1, 0, 11, 10)))
    async with serve() as client:
        found = [
            (await scored(client, "a photo of two dogs", **options))["details"]["geneval"]
            for options in (
                {},
                {"counting_threshold": 0.1},
                {"counting_threshold": 0.1, "max_objects": 1},
                {"counting_threshold": 0.1, "max_overlap": 0.5},
            )
        ]

    assert [False, True, False, False] == [each["correct"] for each in found]
    assert [1, 2, 2, 2] == [len(each["boxes"]) for each in found]


async def test_the_margin_of_positions_is_an_option(serve, detector):
    """Centres 6 pixels apart, of boxes that are 10 wide."""
    detector.found = (detection("dog", box=(0, 0, 10, 10)), detection("cat", box=(6, 0, 16, 10)))
    async with serve() as client:
        found = [
            await scored(client, "a photo of a dog left of a cat", position_threshold=margin)
            for margin in (0.1, 0.2)
        ]

    assert [1.0, 0.0] == [each["scores"]["geneval"] for each in found]
    assert [1.0, 0.75] == [each["details"]["geneval"]["reward"] for each in found]


async def test_an_object_that_counts_by_a_lower_threshold_has_its_colour(serve, detector):
    """It gets one as all objects that count."""
    detector.found = (detection("dog", 0.2),)
    image = picture(("red", (0, 0, 10, 10)))
    async with serve() as client:
        found = await scored(client, "a photo of a red dog", image, threshold=0.1)

    assert 1.0 == found["scores"]["geneval"]
    assert ["red"] == [box["color"] for box in found["details"]["geneval"]["boxes"]]


async def test_what_stands_around_an_object_is_an_option(serve, fakes, detector):
    """A few red pixels on blue: on grey it is red, with its surroundings blue."""
    mask = np.zeros((10, 10), bool)
    mask[:2, :2] = True
    detector.found = (detection("dog", mask=mask),)
    image = picture(("red", (0, 0, 2, 2)))
    async with serve() as client:
        found = [
            (await scored(client, "a photo of a red dog", image, **options))["scores"]["geneval"]
            for options in ({}, {"crop": False}, {"bgcolor": "original"}, {"bgcolor": "#00f"})
        ]

    assert [1.0, 1.0, 0.0, 0.0] == found
    box, whole = (10, 10), (SIZE, SIZE)
    assert [box, whole, box, box] == [
        call.image.size for call in fakes["clip"].calls if isinstance(call, ImageCall)
    ]


@pytest.mark.parametrize(
    "options",
    [{"bgcolor": "blur"}, {"threshold": 0}, {"max_objects": 0}, {"max_overlap": 1.1}, {"crop": "no"}],
)
async def test_options_outside_their_values_are_refused(serve, detector, options):
    """As all options."""
    body = {"items": [item("a photo of a dog", options={"geneval": options})], "metrics": ["geneval"]}
    async with serve() as client:
        answer = await client.post("/score", json=body)

    assert 422 == answer.status_code
