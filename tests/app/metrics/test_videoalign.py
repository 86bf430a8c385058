"""VideoAlign scores the frames of an item together."""

import pytest

from tests.support.fakes import FakeVideoAlign
from tests.support.films import COLOURS, decoded_films, film
from tests.support.pictures import b64, item, pixels, png

__all__ = ["decoded_films"]

pytestmark = pytest.mark.anyio

MODELS = {name: {"family": "fake", "role": name} for name in ("videoalign", "clip", "vqa", "questions")}
SETTINGS = {"models": MODELS, "metrics": {"videoalign": {"model": "videoalign"}}}
HEADS = [f"videoalign.{name}" for name in ("visual", "motion", "text")]
STILLS = [b64(png(colour)) for colour in COLOURS[:3]]


@pytest.fixture
def model(fakes):
    """The model of `videoalign`."""
    fakes["videoalign"] = FakeVideoAlign()
    return fakes["videoalign"]


@pytest.fixture(autouse=True)
def decoded(decoded_films):
    """The numbers of the frames that were decoded of each film."""
    return decoded_films


def body(*items, metrics=("videoalign",), **more):
    return {"items": [*items], "metrics": [*metrics], "explain": True, **more}


def seen(model):
    """The colours of the frames of each call."""
    return [[pixels(frame).getpixel((2, 2)) for frame in call.frames] for call in model.calls]


async def scored(client, *items, **more):
    """The results of a request."""
    answer = await client.post("/score", json=body(*items, **more))
    assert 200 == answer.status_code, answer.text
    return answer.json()["results"]


RED, LIME, BLUE, BLACK = (255, 0, 0), (0, 255, 0), (0, 0, 255), (0, 0, 0)


@pytest.mark.parametrize("frames", [b64(film()), STILLS], ids=["animation", "pictures"])
async def test_frames_are_one_call_whose_outputs_are_metrics(serve, model, frames):
    """In their order; the score is the sum, beside a metric that scores each frame."""
    metrics = ["videoalign", *HEADS, "clipscore"]
    async with serve(**SETTINGS, cache={"scores": "off"}) as client:
        [result] = await scored(
            client, item(image=frames), metrics=metrics, options={"clipscore": {"frames": "mean"}}
        )

    whole, *heads, _ = (result["scores"][name] for name in metrics)
    assert [[RED, LIME, BLUE]] == seen(model)
    assert whole == pytest.approx(sum(heads))
    assert {"visual": heads[0], "motion": heads[1], "text": heads[2], "frames_used": 3} == result["details"][
        "videoalign.motion"
    ]
    assert 3 == result["details"]["clipscore"]["frames_used"]


async def test_a_still_picture_is_an_error_of_that_metric_alone(serve, model):
    """As is a clip of one frame; neighbours are scored."""
    clip = {**item(image=b64(film())), "end": 0.01}
    async with serve(**SETTINGS) as client:
        results = await scored(
            client, item(), clip, item(image=STILLS), metrics=["videoalign", HEADS[1], "clipscore"]
        )

    still, short, whole = results
    for failed in (still, short):
        assert ["clipscore"] == [*failed["scores"]]
        assert {"missing_picture"} == {error["code"] for error in failed["errors"].values()}
        assert "needs a video, or several frames" in failed["errors"]["videoalign"]["detail"]
    assert 3 == len(whole["scores"])
    assert 1 == len(model.calls)


async def test_samples_are_frames_of_the_call_and_a_grid_is_none(serve, model):
    """With a warning."""
    options = {"videoalign": {"samples": 2, "frames": "grid"}}
    async with serve(**SETTINGS) as client:
        answer = (
            await client.post("/score", json=body(item(image=b64(film(colours=COLOURS))), options=options))
        ).json()

    assert [[LIME, BLACK]] == seen(model)
    assert "item 0, videoalign: the option frames has no effect with this metric" in answer["warnings"]


async def test_a_frame_that_cannot_be_decoded_is_named(serve, model):
    """The item's other frames are whole."""
    broken = png(size=(64, 64))[:-30]
    async with serve(**SETTINGS) as client:
        [result] = await scored(client, item(image=[STILLS[0], b64(broken), STILLS[2]]))

    assert "image_undecodable" == result["errors"]["videoalign"]["code"]
    assert result["errors"]["videoalign"]["detail"].startswith("frame 1: ")
    assert [] == model.calls


async def test_the_memory_of_all_frames_is_reserved_in_one_step(serve, model):
    """Pictures that a metric scores one by one may be too large together."""
    large = [b64(png(colour, size=(240, 240))) for colour in COLOURS[:3]]
    async with serve(**SETTINGS, images={"decoded_budget_mb": 1, "max_pixels": 60_000}) as client:
        [result] = await scored(client, item(image=large), metrics=["videoalign", "clipscore"])

    assert ["clipscore"] == [*result["scores"]]
    assert "3 images that are used together take" in result["errors"]["videoalign"]["detail"]


async def test_a_film_is_decoded_once_for_all_metrics(serve, model, decoded):
    """Those that score frames apart, and those that score them together."""
    asked = {"metrics": ["clipscore", "videoalign"], "options": {"clipscore": {"frames": "mean"}}}
    async with serve(**SETTINGS) as client:
        [result] = await scored(client, item(image=b64(film())), **asked)

    assert 2 == len(result["scores"])
    assert [[0, 1, 2]] == decoded


async def test_heads_may_be_parts_of_a_composite(serve, model):
    """Which then scores frames together, as they do."""
    parts = {"videoalign.motion": {"weight": 1.0}, "videoalign.text": {"weight": -0.5}}
    async with serve(**SETTINGS, composites={"moves": parts}) as client:
        [result] = await scored(client, item(image=STILLS), metrics=["moves", *HEADS])

    scores = result["scores"]
    assert scores["moves"] == pytest.approx(scores[HEADS[1]] - 0.5 * scores[HEADS[2]])
    assert 1 == len(model.calls)
