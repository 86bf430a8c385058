"""`orient`: pictures whose EXIF orientation says that they are stored lying on their side."""

import json

import pytest

from tests.support.fakes import FakeDetector
from tests.support.pictures import b64, item, pixels, png
from tests.support.refusals import JSON, refused
from tests.support.turned import turned
from tests.support.web_server import this_machine

pytestmark = pytest.mark.anyio

PHONE = turned()
STORED, UPRIGHT = (16, 8), (8, 16)
TOLD = 'item 0, vqascore: the image was not turned by its EXIF orientation, 6; orient: "exif" turns it'
CODED = {"code": "image_rotated_by_exif", "item": 0, "metric": "vqascore"}


async def posted(client, body, path="/score", **files):
    sent = {"data": {"request": json.dumps(body)}, "files": files} if files else {"json": body}
    answer = await client.post(path, **sent)
    assert 200 == answer.status_code, answer.text
    return answer.json()


def looks(fakes):
    """The size of each picture that the model was asked about, in order."""
    return [call.image.size for call in fakes["vqa"].calls]


async def test_as_stored_is_scored_lying_with_a_warning_and_exif_upright_without(serve, fakes):
    """The default is the reference's; the two are different pictures to every cache."""
    async with serve() as client:
        body = {"items": [item(image=b64(PHONE))]}
        stored, upright = [await posted(client, body | more) for more in ({}, {"orient": "exif"})]
        again = [await posted(client, body | {"orient": orient}) for orient in ("as_stored", "exif")]

    assert [STORED, UPRIGHT] == looks(fakes)
    corners = [pixels(call.image).getpixel((0, call.image.size[1] - 1)) for call in fakes["vqa"].calls]
    assert [(255, 0, 0), (0, 0, 255)] == corners
    assert ([TOLD], [CODED]) == (stored["warnings"], stored["warning_codes"])
    assert not {"warnings", "warning_codes"} & upright.keys()
    assert stored["results"][0]["scores"] != upright["results"][0]["scores"]
    assert [{"vqascore": "hit"}] * 2 == [answer["results"][0]["cache"] for answer in again]
    assert [stored["results"][0]["scores"], upright["results"][0]["scores"]] == [
        answer["results"][0]["scores"] for answer in again
    ]


async def test_a_picture_without_orientation_is_the_same_to_every_cache(serve, fakes):
    """Asking for it upright costs no second call."""
    async with serve() as client:
        plain = await posted(client, {"items": [item()]})
        upright = await posted(client, {"items": [item()], "orient": "exif"})

    assert {"vqascore": "hit"} == upright["results"][0]["cache"]
    assert plain["results"][0]["scores"] == upright["results"][0]["scores"]
    assert 1 == len(looks(fakes))


async def test_an_items_own_orient_stands_over_the_requests_and_that_over_the_setting(serve, fakes):
    """Each is asked for in one of the three places."""
    lying = [item(image=b64(PHONE)), item(image=b64(PHONE), orient="exif")]
    async with serve(images={"orient": "exif"}) as client:
        by_setting = await posted(client, {"items": [item(image=b64(PHONE))]})
        mixed = await posted(client, {"items": lying, "orient": "as_stored"})

    assert "warnings" not in by_setting
    assert [CODED] == mixed["warning_codes"]
    assert sorted([STORED, UPRIGHT]) == sorted(looks(fakes))


async def test_a_file_part_may_be_looked_at_both_ways(serve, fakes):
    """Two items name it, and orient it differently."""
    part = {"part": "one"}
    body = {"items": [item(image=part), item(image=part, orient="exif")]}
    async with serve() as client:
        answer = await posted(client, body, one=("p.png", PHONE))

    assert [CODED] == answer["warning_codes"]
    assert sorted([STORED, UPRIGHT]) == sorted(looks(fakes))


@pytest.mark.parametrize("parts", [{"network": this_machine()}])
async def test_a_picture_by_url_is_turned_as_its_bytes_are(serve, fakes, httpserver):
    """And told of in the same way."""
    httpserver.expect_request("/a.png").respond_with_data(PHONE)
    image = {"url": f"http://pictures.test:{httpserver.port}/a.png"}
    allowed = {"allow_urls": True, "allowed_url_hosts": [f"pictures.test:{httpserver.port}"]}
    async with serve(images=allowed) as client:
        stored = await posted(client, {"items": [item(image=image)]})
        upright = await posted(client, {"items": [item(image=image)], "orient": "exif"})

    assert [TOLD] == stored["warnings"]
    assert "warnings" not in upright
    assert [STORED, UPRIGHT] == looks(fakes)


async def test_references_and_the_source_are_turned_with_the_item(serve, fakes):
    """A warning says which of them was not."""
    edited = item(source=b64(PHONE), options={"judge": {"rubric": "editing"}})
    anchored = item(references=[b64(PHONE)], options={"judge": {"rubric": "anchored_likeness"}})
    body = {"items": [edited, anchored], "metrics": ["judge"]}
    async with serve() as client:
        stored = await posted(client, body)
        upright = await posted(client, body | {"orient": "exif"})

    told = [warning for warning in stored["warnings"] if "EXIF" in warning]
    assert ["item 0, judge: the source was not", "item 1, judge: a reference was not"] == [
        " ".join(warning.split()[:7]) for warning in told
    ]
    assert not any("EXIF" in warning for warning in upright.get("warnings", []))
    shown = [each.size for call in fakes["vqa"].calls for each in call.before if not isinstance(each, str)]
    assert [STORED] * 2 + [UPRIGHT] * 2 == shown


async def test_a_ranking_is_of_pictures_as_they_are_stored_or_turned(serve, fakes):
    """Its warnings name a picture by its index."""
    body = {"prompt": "a red square", "images": [b64(png()), b64(PHONE)]}
    async with serve() as client:
        stored = await posted(client, body, "/rank")
        upright = await posted(client, body | {"orient": "exif"}, "/rank")

    assert [CODED | {"item": 1}] == stored["warning_codes"]
    assert "warnings" not in upright
    assert {(16, 16), STORED, UPRIGHT} == set(looks(fakes))


async def test_the_size_and_the_boxes_of_objects_are_those_of_the_turned_picture(serve, fakes):
    """So that they can be drawn over it."""
    fakes["detector"] = FakeDetector()
    body = {"items": [item("a photo of a dog", b64(PHONE))], "metrics": ["geneval"], "explain": True}
    async with serve() as client:
        stored, upright = [await posted(client, body | {"orient": o}) for o in ("as_stored", "exif")]

    sizes = [
        (told["width"], told["height"])
        for answer in (stored, upright)
        for told in [answer["results"][0]["details"]["geneval"]]
    ]
    assert [STORED, UPRIGHT] == sizes


@pytest.mark.shared
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/score", {"items": [item()], "orient": "upright"}),
        ("/score", {"items": [item(orient=True)]}),
        ("/rank", {"prompt": "a", "images": [b64(png())], "orient": 6}),
    ],
)
async def test_any_other_orient_is_refused(serve, path, body):
    """With its place."""
    async with serve() as client:
        answer = await client.post(path, content=json.dumps(body), headers=JSON)

    [error] = refused(answer, 422, "invalid")["errors"]
    assert error["pointer"].endswith("/orient")
