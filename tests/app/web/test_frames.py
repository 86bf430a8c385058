"""Several images per item: what becomes of frames, how many are scored, and what counts as a frame."""

import json

import pytest

from models.images.formats.mp4 import MP4
from tests.support.films import COLOURS, declared_mp4, film, many_frames
from tests.support.pictures import b64, item, png

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
    return [(call.image.size, call.image.rgb.getpixel((2, 2))) for call in fakes["vqa"].calls]


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
    assert [details(apart[number]) for number in expected] == details(together)["frames"]
    assert (len(expected), 6) == (details(together)["frames_used"], details(together)["frames_given"])


async def test_what_is_too_large_as_an_animation_is_scored_as_a_picture(serve):
    """Another metric of the request counts all frames, and has the error."""
    async with serve(images={"max_pixels": 300}) as client:
        asked = body(b64(film()), metrics=("vqascore", "clipscore"), frames="mean")
        [result] = (await client.post("/score", json=asked)).json()["results"]

    assert ["clipscore"] == list(result["scores"])
    assert "image_too_large" == result["errors"]["vqascore"]["code"]


@pytest.mark.parametrize(
    "image",
    [
        pytest.param(many_frames(60, (2000, 1000)), id="a GIF of 120,000,000 pixels"),
        pytest.param(declared_mp4(1920, 1080, 900), id="a video of as many"),
    ],
)
async def test_the_pixels_of_all_frames_count(serve, image, monkeypatch):
    """Told before anything is decoded, although one frame is sampled."""
    monkeypatch.setattr("models.images.frame_stack.decode_film", lambda *file: pytest.fail("was decoded"))
    monkeypatch.setattr("service.core.settings.sections.find_spec", lambda package: package)
    async with serve(images={"formats": ["GIF", MP4.name]}) as client:
        result = await scored(client, b64(image), samples=1)

    assert "image_too_large" == error(result)["code"]
    assert "frames of" in error(result)["detail"]


async def test_the_pixels_of_a_grid_count(serve, monkeypatch):
    """Each picture is within the limits; the grid is not."""
    monkeypatch.setattr("models.images.image.decode", lambda encoded: pytest.fail("was decoded"))
    wide = b64(png(size=(600, 600)))
    async with serve(images={"max_pixels": 1_000_000}) as client:
        result = await scored(client, [wide, wide], frames="grid")

    assert "image_too_large" == error(result)["code"]
    assert "1200x1200" in error(result)["detail"]


async def test_the_budget_is_given_back(serve, fakes, monkeypatch):
    """After means and grids, of stills, animations and what is broken."""
    from service.wiring.bootstrap import Service

    services, enter = [], Service.__aenter__
    monkeypatch.setattr(Service, "__aenter__", lambda self: services.append(self) or enter(self))
    broken = film()[:-20]
    async with serve() as client:
        for image in (STILLS[0], film(), broken):
            for frames in ("mean", "grid"):
                await scored(client, [b64(image), b64(STILLS[1])], frames=frames)
        [service] = services
        assert 0 == service.pictures.pixels.held


async def test_many_grids_share_a_budget_that_holds_one(serve):
    """Each takes its share at once, so none waits for another that waits for it."""
    size = (500, 500)
    pictures = [b64(png(colour, size=size)) for colour in COLOURS[:4]]
    items = [item(f"a {n}", pictures[n % 4 :] + pictures[: n % 4]) for n in range(12)]
    asked = {"items": items, "options": {"vqascore": {"frames": "grid"}}}
    async with serve(images={"decoded_budget_mb": 8, "max_pixels": 1_000_000}) as client:
        answer = (await client.post("/score", json=asked)).json()

    assert not answer["partial"], answer["results"][0]


async def test_what_is_admitted_is_what_will_be_asked(serve, fakes, monkeypatch):
    """A grid is one call, a sample as many as are sampled, an animation its frames."""
    from service.serving.handle import Handle

    admitted, admit = [], Handle.admit
    monkeypatch.setattr(
        Handle,
        "admit",
        lambda self, context, demand: admitted.append(demand.calls) or admit(self, context, demand),
    )
    stills = [b64(data) for data in STILLS]
    async with serve() as client:
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
@pytest.mark.parametrize("options", [{"frames": "median"}, {"samples": 0}, {"samples": 65}, {"samples": "4"}])
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
