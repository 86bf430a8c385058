"""`items[].references` and `items[].source`: pictures beside an item's image, for metrics that use them."""

import json

import pytest

from models.images.formats.contract import ImageError
from models.images.image import Image
from tests.support.app import service_of
from tests.support.pictures import b64, item, pixels, png
from tests.support.refusals import JSON, refused

pytestmark = pytest.mark.anyio

COLOURS = ["lime", "blue", "black"]
REFERENCES = [b64(png(colour)) for colour in COLOURS]
SOURCE = b64(png("white"))
EDITING, ANCHORED = {"rubric": "editing"}, {"rubric": "anchored_likeness"}


def body(*items, metrics=("judge",), judge=ANCHORED, **fields):
    """A request about *items*, explained."""
    options = {"judge": judge} if judge else {}
    return {"items": list(items), "metrics": list(metrics), "options": options, "explain": True, **fields}


async def scored(client, *items, **fields):
    """The results of a request."""
    answer = await client.post("/score", content=json.dumps(body(*items, **fields)), headers=JSON)
    assert 200 == answer.status_code, answer.text
    return answer.json()["results"]


def shown(fakes):
    """The colours of the pictures that the model was shown before the image, call by call."""
    return [
        [pixels(each).getpixel((0, 0)) for each in call.before if not isinstance(each, str)]
        for call in fakes["vqa"].calls
        if hasattr(call, "before")
    ]


LIME, BLUE, BLACK, WHITE = (0, 255, 0), (0, 0, 255), (0, 0, 0), (255, 255, 255)


async def test_they_come_in_any_form_that_an_image_has(serve, fakes):
    """Base64, a data: URI, an object, and a file part."""
    data_uri, as_object = f"data:image/png;base64,{REFERENCES[1]}", {"data": REFERENCES[2]}
    plain = body(item(references=[REFERENCES[0], data_uri, as_object]), item("b", source=SOURCE))
    plain["items"][1]["options"] = {"judge": EDITING}
    parts = body(item(references=[{"part": "a"}, {"part": "b"}]), item("b", source={"part": "a"}))
    parts["items"][1]["options"] = {"judge": EDITING}
    files = {"a": ("a.png", png("blue")), "b": ("b.png", png("lime"))}
    async with serve() as client:
        await scored(client, *plain["items"])
        answer = await client.post("/score", data={"request": json.dumps(parts)}, files=files)

    assert 200 == answer.status_code, answer.text
    assert not answer.json()["partial"]
    assert sorted([[LIME, BLUE, BLACK], [WHITE], [BLUE, LIME], [BLUE]]) == sorted(shown(fakes))


async def test_the_key_of_a_call_has_all_pictures(serve, fakes):
    """Another reference, another order or another source is another call; the same ones are a hit."""
    ways = [REFERENCES, REFERENCES, REFERENCES[::-1], REFERENCES[:2], [*REFERENCES[:2], SOURCE]]
    async with serve() as client:
        found = [(await scored(client, item(references=way)))[0]["cache"]["judge"] for way in ways]
        found += [
            (await scored(client, item(source=way), judge=EDITING))[0]["cache"]["judge"]
            for way in (SOURCE, REFERENCES[0], SOURCE)
        ]

    assert ["miss", "hit", "miss", "miss", "miss", "miss", "miss", "hit"] == found


@pytest.mark.shared
@pytest.mark.parametrize(
    ("beside", "fields", "place"),
    [
        ({"references": REFERENCES}, {"metrics": ["vqascore"], "judge": None}, "references"),
        ({"source": SOURCE}, {"metrics": ["vqascore", "clipscore"], "judge": None}, "source"),
        ({"source": SOURCE}, {"judge": ANCHORED}, "source"),
        ({"references": REFERENCES}, {"judge": EDITING}, "references"),
        ({"references": REFERENCES}, {"judge": None}, "references"),
    ],
)
async def test_pictures_that_no_metric_uses_refuse_the_request(serve, fakes, beside, fields, place):
    """By their place, before any work; whether a metric uses them depends on its options."""
    async with serve() as client:
        answer = await client.post("/score", json=body(item(), item(**beside), **fields))

    [fault] = refused(answer, 422, "invalid")["errors"]
    assert (f"/items/1/{place}", "unused_picture") == (fault["pointer"], fault["code"])
    assert [] == fakes["vqa"].calls


async def test_other_metrics_of_the_item_do_not_look_at_them(serve, fakes):
    """One that uses them is enough."""
    async with serve() as client:
        [result] = await scored(client, item(references=REFERENCES), metrics=("vqascore", "judge"))
        [alone] = await scored(client, item(), metrics=("vqascore",), judge=None)

    assert {"vqascore", "judge"} == result["scores"].keys()
    assert alone["scores"]["vqascore"] == result["scores"]["vqascore"]
    assert "hit" == alone["cache"]["vqascore"]


WRONG = {
    "four": ({"references": [*REFERENCES, SOURCE]}, "/items/0/references"),
    "frames": ({"references": [REFERENCES]}, "/items/0/references/0"),
    "no list": ({"references": SOURCE}, "/items/0/references"),
    "a number": ({"references": [SOURCE, 5]}, "/items/0/references/1"),
    "a list as the source": ({"source": [SOURCE]}, "/items/0/source"),
    "an unknown field": ({"source": {"data": SOURCE, "name": "a"}}, "/items/0/source/name"),
    "a missing part": ({"references": [SOURCE, {"part": "gone"}]}, "/items/0/references/1/part"),
    "a missing part as the source": ({"source": {"part": "gone"}}, "/items/0/source/part"),
}


@pytest.mark.shared
@pytest.mark.parametrize("kind", WRONG)
async def test_what_the_json_shows_to_be_wrong_refuses_the_request(serve, kind):
    """With its place."""
    beside, pointer = WRONG[kind]
    async with serve() as client:
        answer = await client.post("/score", json=body(item(**beside)))

    assert pointer == refused(answer, 422, "invalid")["errors"][0]["pointer"]


@pytest.mark.shared
@pytest.mark.parametrize("nothing", [None, []])
async def test_none_at_all_is_none(serve, nothing):
    """`null` and an empty list stand for no references, so they refuse nothing."""
    async with serve() as client:
        [result] = await scored(
            client, item(references=nothing, source=None), metrics=("vqascore",), judge=None
        )

    assert "vqascore" in result["scores"]


BROKEN = {
    "cut off": (b64(png(size=(40, 40))[:-30]), "image_undecodable"),
    "no image": (b64(b"no image"), "image_undecodable"),
    "empty": ("", "image_undecodable"),
    "not base64": ("!", "not_base64"),
    "too many pixels": (b64(png(size=(600, 600))), "image_too_large"),
    "a URL": ({"url": "https://example.org/a.png"}, "url_not_allowed"),
}


@pytest.mark.parametrize("kind", BROKEN)
@pytest.mark.parametrize(
    ("beside", "judge", "place"),
    [
        (lambda bad: {"references": [REFERENCES[0], bad, REFERENCES[2]]}, ANCHORED, "/items/1/references/1"),
        (lambda bad: {"source": bad}, EDITING, "/items/1/source"),
    ],
    ids=["reference", "source"],
)
async def test_a_broken_one_is_the_error_of_the_metric_that_uses_it_and_is_named(
    serve, fakes, kind, beside, judge, place
):
    """Other metrics and other items are scored; also where the pixels alone are broken."""
    bad, code = BROKEN[kind]
    good = item("good", **beside(SOURCE))
    async with serve(images={"max_pixels": 100_000}) as client:
        first, second = await scored(
            client, good, item(**beside(bad)), metrics=("vqascore", "judge"), judge=judge
        )

    assert {"vqascore", "judge"} == first["scores"].keys()
    assert {"vqascore"} == second["scores"].keys()
    error = second["errors"]["judge"]
    assert code == error["code"]
    assert error["detail"].startswith(f"{place}: "), error


async def test_a_broken_image_is_not_blamed_on_what_is_beside_it(serve):
    """The error is the image's, as under any metric."""
    cut_off = b64(png(size=(40, 40))[:-30])
    async with serve() as client:
        [result] = await scored(client, item(image=cut_off, references=REFERENCES))

    assert "image_undecodable" == result["errors"]["judge"]["code"]
    assert "/items" not in result["errors"]["judge"]["detail"]


async def test_their_pixels_count_together(serve):
    """Each fits, and all of them do not, which is seen before the broken ones are decoded."""
    large = [b64(png(colour, (600, 600))[:-30]) for colour in COLOURS]
    async with serve(images={"decoded_budget_mb": 8, "max_pixels": 1_000_000}) as client:
        [result] = await scored(client, item(image=b64(png(size=(600, 600))), references=large))

    assert "image_too_large" == result["errors"]["judge"]["code"]
    assert "4 images that are used together" in result["errors"]["judge"]["detail"]


async def test_many_items_share_a_budget_that_holds_one_and_give_it_back(serve):
    """Each takes its share at once, so none waits for another that waits for it."""
    pictures = [b64(png(colour, (600, 600))) for colour in ("red", *COLOURS)]
    broken = b64(png(size=(40, 40))[:-30])
    items = [item(f"a {n}", pictures[n % 4], references=[pictures[n - 1]]) for n in range(4)]
    items += [item(f"b {n}", pictures[n], references=[broken, pictures[0]]) for n in range(4)]
    async with serve(images={"decoded_budget_mb": 8, "max_pixels": 1_000_000}) as client:
        results = await scored(client, *items, metrics=("judge", "vqascore"))
        held = service_of(client).images.pixels.held

    assert [True] * 4 + [False] * 4 == ["judge" in result["scores"] for result in results]
    assert all("vqascore" in result["scores"] for result in results)
    assert 0 == held


async def test_each_frame_and_a_grid_of_frames_is_compared_with_them(serve, fakes):
    """The same references beside each."""
    frames = [b64(png("red")), b64(png("yellow"))]
    async with serve() as client:
        [mean] = await scored(client, item(image=frames, references=REFERENCES[:1]))
        [grid] = await scored(
            client, item(image=frames, references=REFERENCES[:1]), judge={**ANCHORED, "frames": "grid"}
        )

    assert 2 == len(mean["details"]["judge"]["frames"])
    assert 2 == grid["details"]["judge"]["side"]
    assert [[LIME]] * 3 == shown(fakes)


async def test_a_picture_that_many_items_name_is_read_once(serve, monkeypatch):
    """The header of a file part is looked at for the first of them."""
    seen, lazy = [], vars(Image)["header"]
    find = lazy._find
    monkeypatch.setattr(lazy, "_find", lambda image: seen.append(image.digest) or find(image))
    request = body(*(item(f"a {n}", {"part": "i"}, references=[{"part": "r"}]) for n in range(5)))
    files = {"i": ("a.png", png("blue")), "r": ("b.png", png("lime"))}
    async with serve() as client:
        answer = await client.post("/score", data={"request": json.dumps(request)}, files=files)

    assert not answer.json()["partial"]
    assert 2 == len(seen)


async def test_a_composite_uses_what_its_parts_use(serve):
    """With the options that the profile gives them."""
    composites = {
        "edited": {"judge": {"weight": 1, "rubric": "editing"}, "vqascore": {"weight": 1}},
        "plain": {"judge": {"weight": 1}},
    }
    async with serve(composites=composites) as client:
        [result] = await scored(client, item(source=SOURCE), metrics=("edited",), judge=None)
        answer = await client.post("/score", json=body(item(source=SOURCE), metrics=("plain",), judge=None))
        metrics = (await client.get("/models")).json()["metrics"]

    assert "edited" in result["scores"]
    assert "/items/0/source" == refused(answer, 422, "invalid")["errors"][0]["pointer"]
    assert (["source"], []) == (metrics["edited"]["uses"], metrics["plain"]["uses"])
    assert (["references", "source"], []) == (metrics["judge"]["uses"], metrics["vqascore"]["uses"])


async def test_an_error_that_is_no_pictures_is_left_alone(serve, fakes):
    """Only what cannot be decoded is looked for among the pictures."""
    fakes["vqa"].fault = lambda call: ImageError("of the model's own") if hasattr(call, "before") else None
    async with serve() as client:
        [result] = await scored(client, item(references=REFERENCES))

    assert "/items" not in result["errors"]["judge"]["detail"]
