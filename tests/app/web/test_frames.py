"""Several images per item: what becomes of frames, how many are scored, and what counts as a frame."""

import json

import pytest

from models.images.formats.mp4 import MP4
from tests.support.app import forecast, service_of
from tests.support.films import COLOURS, declared_mp4, decoded_films, film, many_frames
from tests.support.pictures import b64, item, pixels, png

__all__ = ["decoded_films"]

pytestmark = pytest.mark.anyio

STILLS = [png(colour) for colour in COLOURS]


def body(image, metrics=("vqascore",), **options):
    """A request for one item, explained."""
    asked = {"items": [item(image=image)], "metrics": list(metrics), "explain": True}
    return asked | {"options": {"vqascore": options}} if options else asked


async def scored(client, image, **options):
    """The one result of a request."""
    answer = await client.post("/score", json=body(image, **options))
    assert 200 == answer.status_code, answer.text
    [result] = answer.json()["results"]
    return result


def details(result):
    return result["details"]["vqascore"]


def error(result):
    return result["errors"]["vqascore"]


def seen(fakes):
    """The size and the colour in the top left corner of each picture that the model was asked about."""
    return [(call.image.size, pixels(call.image).getpixel((2, 2))) for call in fakes["vqa"].calls]


async def test_a_grid_is_scored_once(serve, fakes):
    """Five frames are nine cells of one picture, which the details say."""
    async with serve() as client:
        result = await scored(client, [b64(png) for png in STILLS[:5]], frames="grid")

    assert [((48, 48), (255, 0, 0))] == seen(fakes)
    told = details(result)
    assert (3, 5, 5) == (told["side"], told["frames_used"], told["frames_given"])
    assert result["scores"]["vqascore"] == told["grid"]["likelihood"]


async def test_a_grid_of_one_picture_is_that_picture(serve, fakes):
    """So it has the same score, and is found in the cache."""
    async with serve() as client:
        alone = await scored(client, b64(STILLS[0]))
        grid = await scored(client, [b64(STILLS[0])], frames="grid")

    assert alone["scores"] == grid["scores"]
    assert details(alone) == details(grid)
    assert "hit" == grid["cache"]["vqascore"]


async def test_equal_grids_are_found_in_the_cache_and_others_are_not(serve, fakes):
    """They are the same frames in the same order."""
    frames = [b64(data) for data in STILLS[:3]]
    async with serve() as client:
        ways = [
            (await scored(client, asked, frames="grid"))["cache"]["vqascore"]
            for asked in (frames, frames, frames[::-1], frames[:2])
        ]

    assert ["miss", "hit", "miss", "miss"] == ways


@pytest.mark.parametrize(
    ("samples", "expected"),
    [(1, [3]), (2, [1, 4]), (3, [1, 3, 5]), (6, [0, 1, 2, 3, 4, 5]), (64, [0, 1, 2, 3, 4, 5])],
)
async def test_samples_are_the_middles_of_equal_parts(serve, fakes, samples, expected):
    """All of them where there are no more; the score is their mean."""
    async with serve() as client:
        apart = [await scored(client, b64(data)) for data in STILLS]
        together = await scored(client, [b64(data) for data in STILLS], samples=samples)

    wanted = [apart[number]["scores"]["vqascore"] for number in expected]
    assert sum(wanted) / len(wanted) == pytest.approx(together["scores"]["vqascore"])
    of_each = [{"score": apart[n]["scores"]["vqascore"], **details(apart[n])} for n in expected]
    assert of_each == details(together)["frames"]
    assert (len(expected), 6) == (details(together)["frames_used"], details(together)["frames_given"])


async def test_what_is_too_large_as_an_animation_is_scored_as_a_picture(serve):
    """Another metric of the request counts all frames, and has the error."""
    async with serve(images={"max_pixels": 300}) as client:
        asked = body(b64(film()), metrics=("vqascore", "clipscore"), frames="mean")
        [result] = (await client.post("/score", json=asked)).json()["results"]

    assert ["clipscore"] == list(result["scores"])
    assert "image_too_large" == result["errors"]["vqascore"]["code"]


@pytest.mark.parametrize(
    ("image", "start", "why"),
    [
        pytest.param(many_frames(60, (9000, 9000)), 0, "9000x9000", id="a frame with too many pixels"),
        pytest.param(declared_mp4(1920, 1080, 1000), 0, None, id="many frames of which one is sampled"),
        pytest.param(declared_mp4(1920, 1080, 2000), 82, "at most 1929 frames", id="many frames before it"),
        pytest.param(many_frames(60, (2000, 1000)), 5, "at most 25 frames", id="many frames of an animation"),
        pytest.param(many_frames(60), 7, "no frame is between start and end; it lasts 6 s", id="no frame"),
    ],
)
async def test_the_pixels_of_a_frame_and_of_all_before_it_count(serve, image, start, why, decoded_films):
    """Told before anything is decoded; frames after the last one that is sampled do not count."""
    async with serve(images={"formats": ["GIF", MP4.name]}) as client:
        asked = {**body(b64(image), samples=1), "start": start, "end": start + 0.1}
        [result] = (await client.post("/score", json=asked)).json()["results"]

    assert (why is None) == ("vqascore" in result["scores"])
    assert why is None or why in error(result)["detail"]


@pytest.mark.parametrize("where", ["item", "request", "both"])
async def test_a_part_of_an_animation_is_taken_at_a_rate(serve, where, decoded_films):
    """With the time and the score of each frame; an item's own fields override those of the request."""
    asked = body(b64(film(colours=COLOURS, duration=200)))
    clip, other = {"start": 0.4, "end": 1.2, "fps": 2.5}, {"start": 0, "end": 0.1, "fps": 1}
    asked["items"][0].update({} if where == "request" else clip)
    asked.update(clip if where == "request" else other if where == "both" else {})
    async with serve() as client:
        [result] = (await client.post("/score", json=asked)).json()["results"]

    frames = details(result)["frames"]
    assert [(2, 0.4), (4, 0.8)] == [(each["frame"], pytest.approx(each["time_s"])) for each in frames]
    assert result["scores"]["vqascore"] == pytest.approx(sum(each["score"] for each in frames) / 2)
    assert (2, 6) == (details(result)["frames_used"], details(result)["frames_given"])


@pytest.mark.shared
@pytest.mark.parametrize(
    "clip", [{"start": -1}, {"end": 0}, {"start": 2, "end": 2}, {"fps": 0}, {"fps": "2"}, {"fps": 1001}]
)
async def test_a_part_that_cannot_be_is_refused(serve, clip):
    """With its place, in an item and in the request."""
    async with serve() as client:
        of_item = await client.post("/score", json={"items": [{**item(), **clip}]})
        of_request = await client.post("/score", json={"items": [item()], **clip})

    name = [*clip][-1]
    for answer, place in ((of_item, f"/items/0/{name}"), (of_request, f"/{name}")):
        assert 422 == answer.status_code
        assert place == answer.json()["errors"][0]["pointer"]


async def test_the_pixels_of_a_grid_count(serve):
    """Each picture is within the limits; the grid is not, which is seen before these broken ones are."""
    wide = b64(png(size=(600, 600))[:-30])
    async with serve(images={"max_pixels": 1_000_000}) as client:
        result = await scored(client, [wide, wide], frames="grid")

    assert "image_too_large" == error(result)["code"]
    assert "1200x1200" in error(result)["detail"]


async def test_the_budget_is_given_back(serve):
    """After means and grids, of stills, animations and what is broken."""
    broken = film()[:-20]
    async with serve() as client:
        for image in (STILLS[0], film(), broken):
            for frames in ("mean", "grid"):
                await scored(client, [b64(image), b64(STILLS[1])], frames=frames)
        assert 0 == service_of(client).images.pixels.held


async def test_many_grids_share_a_budget_that_holds_one(serve):
    """Each takes its share at once, so none waits for another that waits for it."""
    size = (500, 500)
    pictures = [b64(png(colour, size=size)) for colour in COLOURS[:4]]
    items = [item(f"a {n}", pictures[n % 4 :] + pictures[: n % 4]) for n in range(12)]
    asked = {"items": items, "options": {"vqascore": {"frames": "grid"}}}
    async with serve(images={"decoded_budget_mb": 8, "max_pixels": 1_000_000}) as client:
        answer = (await client.post("/score", json=asked)).json()

    assert not answer["partial"], answer["results"][0]


async def test_what_is_admitted_is_what_will_be_asked(serve):
    """A grid is one call, a sample as many as are sampled, an animation its frames."""
    stills = [b64(data) for data in STILLS]
    async with serve() as client:
        admitted = forecast(client, "vqa")
        for options, image, calls in (
            ({}, stills, 6),
            ({"frames": "grid"}, stills, 1),
            ({"samples": 4}, stills, 4),
            ({"frames": "mean"}, b64(film()), 3),
            ({"frames": "grid"}, b64(film()), 1),
        ):
            await scored(client, image, **options)
            assert calls == admitted[-1], options


@pytest.mark.shared
@pytest.mark.parametrize(
    "options", [{"frames": "median"}, {"samples": 0}, {"samples": 129}, {"samples": "4"}]
)
async def test_other_values_are_refused(serve, options):
    """With their place."""
    async with serve() as client:
        answer = await client.post("/score", json=body(b64(STILLS[0]), **options))

    assert 422 == answer.status_code
    [name] = options
    assert f"/options/vqascore/{name}" == answer.json()["errors"][0]["pointer"]


async def test_a_composite_folds_frames_as_any_metric_does(serve):
    """The parts look at the grid."""
    asked = {
        "items": [item(image=[b64(data) for data in STILLS[:2]])],
        "metrics": ["both"],
        "options": {"both": {"frames": "grid"}},
        "explain": True,
    }
    async with serve(composites={"both": {"vqascore": {"weight": 1}, "clipscore": {"weight": 1}}}) as client:
        answer = await client.post(
            "/score", content=json.dumps(asked), headers={"Content-Type": "application/json"}
        )

    [result] = answer.json()["results"]
    assert {"vqascore", "clipscore"} == result["details"]["both"]["grid"]["parts"].keys()
    assert 2 == result["details"]["both"]["frames_used"]
