"""GenEval as a metric: which objects are looked for, in which colour and place."""

import numpy as np
import pytest

from service.metrics.objects.tasks import CLASSES
from tests.support.fake_objects import SIZE, Leaning, detection, picture, scored
from tests.support.pictures import item

pytestmark = pytest.mark.anyio


async def test_a_prompt_is_scored_by_what_the_detector_finds(serve, detector):
    """1 or 0, with the reason; details can be sent to the replay."""
    detector.found = (detection("dog", 0.95), detection("dog", 0.91, (20, 0, 30, 10)), detection("cat", 0.31))
    async with serve() as client:
        two = await scored(client, "a photo of two dogs")
        three = await scored(client, "a photo of three dogs")

    assert (1.0, 0.0) == (two["scores"]["geneval"], three["scores"]["geneval"])
    shown = three["details"]["geneval"]
    assert (False, "expected dog>=3, found 2") == (shown["correct"], shown["reason"])
    assert "counting" == shown["tag"]
    assert [{"class": "dog", "count": 3}] == shown["include"]
    assert [{"class": "dog", "count": 4}] == shown["exclude"]
    assert (SIZE, SIZE) == (shown["width"], shown["height"])
    assert {"class": "dog", "score": 0.91, "box": [20, 0, 30, 10], "color": None} == shown["boxes"][1]
    assert 3 == len(shown["boxes"])


async def test_counting_asks_for_surer_objects_than_other_tasks(serve, detector):
    """0.9 in place of 0.3, and more than that."""
    detector.found = (detection("dog", 0.95), detection("dog", 0.9), detection("cat", 0.31))
    async with serve() as client:
        counted = await scored(client, "a photo of two dogs")
        seen = await scored(client, "a photo of a dog and a cat")

    assert "expected dog>=2, found 1" == counted["details"]["geneval"]["reason"]
    assert 1.0 == seen["scores"]["geneval"]


async def test_colours_matter_only_if_enough_objects_count(serve, detector):
    """In counting, one at 0.9 does not."""
    detector.found = (detection("dog", 0.9), detection("dog", 0.95))
    red = {"tag": "counting", "include": [{"class": "dog", "count": 2, "color": "red"}]}
    async with serve() as client:
        found = await scored(client, "two red dogs", picture(("red", (0, 0, SIZE, SIZE))), **red)

    assert [None, None] == [each["color"] for each in found["details"]["geneval"]["boxes"]]


async def test_a_colour_is_that_of_the_objects_pixels_alone(serve, detector):
    """A small red dog before a blue wall: what is not the dog is grey for CLIP."""
    box = (8, 8, 40, 40)
    mask = np.zeros((32, 32), bool)
    mask[4:9, 20:25] = True
    detector.found = (detection("dog", 0.95, box, mask),)
    image = picture(("red", (28, 12, 33, 17)))
    async with serve() as client:
        red = await scored(client, "a photo of a red dog", image)
        blue = await scored(client, "a photo of a blue dog", image)

    assert (1.0, 0.0) == (red["scores"]["geneval"], blue["scores"]["geneval"])
    assert ["red"] == [each["color"] for each in red["details"]["geneval"]["boxes"]]
    assert "expected blue dog>=1, found 0 blue; and 1 red" == blue["details"]["geneval"]["reason"]


@pytest.mark.parametrize(
    ("red", "blue"), [((-80, 0, 80), (30, 30, 30)), ((20, 20, 20), (0, 90, 90))], ids=["lengths", "best"]
)
async def test_a_colour_is_compared_by_the_direction_of_its_templates_mean(serve, detector, fakes, red, blue):
    """Not by the mean's length, nor by the best of the three."""
    fakes["clip"] = Leaning()
    fakes["clip"].red, fakes["clip"].blue = red, blue
    detector.found = (detection("dog"),)
    async with serve() as client:
        found = await scored(client, "a photo of a red dog")

    assert ["red"] == [each["color"] for each in found["details"]["geneval"]["boxes"]]


async def test_metadata_say_what_a_prompt_does_not(serve, detector):
    """The prompt may be any, and there is a warning where the metadata are another prompt's."""
    detector.found = (detection("dog", box=(0, 0, 10, 10)), detection("cat", box=(40, 0, 50, 10)))
    metadata = {
        "tag": "position",
        "include": [{"class": "dog", "count": 1}, {"class": "cat", "count": 1, "position": ["right of", 0]}],
        "prompt": "a photo of a cat right of a dog",
    }
    async with serve() as client:
        found = await scored(client, "a cat sits right of a dog", **metadata)
        same = await scored(client, metadata["prompt"], **metadata)
        wrong = await scored(client, "a photo of a cat left of a dog")

    assert (1.0, 1.0, 0.0) == tuple(each["scores"]["geneval"] for each in (found, same, wrong))
    said = "item 0, geneval: options.geneval are the metadata of another prompt"
    assert (True, False) == tuple(said in each["warnings"] for each in (found, same))


async def test_the_rule_for_positions_is_an_option(serve, detector):
    """Mostly above, and a little to the left."""
    detector.found = (detection("dog", box=(0, 0, 10, 10)), detection("cat", box=(6, 20, 16, 30)))
    async with serve() as client:
        found = [
            await scored(client, "a photo of a dog left of a cat", position_rule=rule)
            for rule in ("released", "paper")
        ]

    assert [0.0, 1.0] == [each["scores"]["geneval"] for each in found]
    shown = [each["details"]["geneval"] for each in found]
    assert [("released", False), ("paper", True)] == [
        (each["position_rule"], each["strict"]) for each in shown
    ]


async def test_a_detector_that_finds_anything_is_told_all_classes(serve, detector):
    """So that one call serves all prompts; a class of the metadata's own is added."""
    async with serve() as client:
        await scored(client, "a photo of a dog")
        await scored(client, "a photo of two cats")
        await scored(client, "a dragon", tag="single_object", include=[{"class": "dragon", "count": 1}])

    assert [CLASSES, (*CLASSES, "dragon")] == [call.labels for call in detector.calls]


async def test_a_detector_of_certain_classes_is_told_none_and_read_in_genevals_words(serve, detector):
    """COCO's "mouse" is GenEval's "computer mouse"."""
    detector.knows("dog", "mouse")
    detector.found = (detection("mouse"),)
    async with serve() as client:
        found = await scored(client, "a photo of a computer mouse")

    assert 1.0 == found["scores"]["geneval"]
    assert [()] == [call.labels for call in detector.calls]


@pytest.mark.parametrize(
    "prompt",
    [
        "a dog",
        "A photo of a dog",
        "a photo of a dragon",
        "a photo of an dog",
        "a photo of a dog and a dog",
        "a photo of a dog left of a dog",
        "a photo of five dogs",
        "a photo of two buss",
        "a photo of a grey dog",
        "a photo of a dog under a cat",
        "a photo of a dog and a red cat",
        "a photo of a dog.",
    ],
)
async def test_any_other_prompt_is_an_error_that_quotes_it(serve, detector, prompt):
    """Of this metric alone; the detector is not asked."""
    async with serve() as client:
        answer = await client.post(
            "/score", json={"items": [item(prompt)], "metrics": ["geneval", "vqascore"]}
        )

    [result] = answer.json()["results"]
    assert "no_task" == result["errors"]["geneval"]["code"]
    assert prompt in result["errors"]["geneval"]["detail"]
    assert ["vqascore"] == list(result["scores"])
    assert [] == detector.calls


async def error(client, prompt, /, **options):
    [told] = (await scored(client, prompt, **options))["errors"].values()
    return told["code"], told["detail"]


async def test_a_class_that_the_detector_does_not_know_is_an_error(serve, detector):
    """Which names both; the detector is not asked."""
    detector.knows("dog")
    async with serve() as client:
        told = await error(client, "a photo of a cat")

    assert ("unknown_class", "'cat' is not a class of the detector detector") == told
    assert [] == detector.calls


async def test_a_colour_without_masks_is_an_error_and_everything_else_is_scored(serve, detector):
    """A box holds other things than the object."""
    detector.draws_no_masks()
    detector.found = (detection("dog"),)
    async with serve() as client:
        code, said = await error(client, "a photo of a red dog")
        plain = await scored(client, "a photo of a dog")

    assert "no_masks" == code
    assert "the detector detector draws no masks" in said
    assert 1.0 == plain["scores"]["geneval"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tag": "colors"}, "has a tag or an exclude, and no include"),
        ({"include": [{"class": "dog", "count": 1}]}, "has an include, and no tag"),
        (
            {"tag": "position", "include": [{"class": "dog", "count": 1, "position": ["above", 0]}]},
            "options.geneval.include[0].position must name an earlier clause",
        ),
    ],
    ids=str,
)
async def test_half_of_the_metadata_is_an_error(serve, detector, options, said):
    """Nothing is guessed, not even from a prompt that would do."""
    async with serve() as client:
        told = await error(client, "a photo of a dog", **options)

    assert "no_task" == told[0]
    assert said in told[1]


@pytest.mark.parametrize(
    ("clause", "pointer"),
    [
        ({"class": "dog"}, "/items/0/options/geneval/include/0/count"),
        ({"class": "dog", "count": 0}, "/items/0/options/geneval/include/0/count"),
        ({"class": "dog", "count": 1, "color": "grey"}, "/items/0/options/geneval/include/0/color"),
        (
            {"class": "dog", "count": 1, "position": ["under", 0]},
            "/items/0/options/geneval/include/0/position",
        ),
        ({"class": "dog", "count": 1, "size": 1}, "/items/0/options/geneval/include/0/size"),
    ],
    ids=str,
)
async def test_a_clause_that_is_none_is_refused_with_its_place(serve, detector, clause, pointer):
    """Before anything is scored."""
    body = {
        "items": [item(options={"geneval": {"tag": "position", "include": [clause]}})],
        "metrics": ["geneval"],
    }
    async with serve() as client:
        answer = await client.post("/score", json=body)

    assert 422 == answer.status_code
    assert any(each["pointer"].startswith(pointer) for each in answer.json()["errors"]), answer.text
