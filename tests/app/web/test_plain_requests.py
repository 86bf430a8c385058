"""Requests as a person types them: plain form fields, one item without a list, no content type."""

import json

import pytest

from tests.support.pictures import b64, png
from tests.support.refusals import refused

pytestmark = [pytest.mark.anyio, pytest.mark.shared]

CAT = ("cat.png", png())
PLAIN = {"data": {"prompt": "a cat"}, "files": {"image": CAT}}


async def test_a_form_of_a_picture_and_a_prompt_is_scored(serve):
    """`curl -F image=@cat.png -F prompt="a cat"` gets what the JSON of that item gets."""
    async with serve() as client:
        form = await client.post("/score", **PLAIN)
        same = await client.post("/score", json={"prompt": "a cat", "image": b64(CAT[1])})

    assert 200 == form.status_code, form.text
    assert [each["scores"] for each in form.json()["results"]] == [
        each["scores"] for each in same.json()["results"]
    ]


async def test_each_file_of_a_plain_form_is_a_picture_of_the_prompt_for_each_metric(serve):
    """Several parts may be named `image`; the names of metrics are separated by commas."""
    files = [("image", CAT), ("image", ("dog.png", png("blue")))]
    data = {"prompt": "a cat", "metrics": "vqascore, clipscore"}
    async with serve() as client:
        answer = await client.post("/score", data=data, files=files)

    assert 200 == answer.status_code, answer.text
    assert [{"vqascore", "clipscore"}] * 2 == [set(each["scores"]) for each in answer.json()["results"]]


MIXED = {
    "no picture": ({"data": {"prompt": "a cat"}, "files": {"other": CAT}}, 400, "image"),
    "another file": ({"data": {"prompt": "a cat"}, "files": {"image": CAT, "b": CAT}}, 400, "request"),
    "a prompt in another charset": ({"data": {"prompt": b"\xff"}, "files": {"image": CAT}}, 400, "prompt"),
    "no prompt": ({"files": {"image": CAT}}, 422, "prompt"),
    "JSON and fields": ({"data": {"prompt": "a", "request": "{}"}, "files": {"image": CAT}}, 422, "request"),
    "an unknown metric": (
        {"data": {"prompt": "a cat", "metrics": "vqascor"}, "files": {"image": CAT}},
        422,
        "vqascore",
    ),
}


@pytest.mark.parametrize(("sent", "status", "named"), MIXED.values(), ids=MIXED)
async def test_a_plain_form_that_lacks_something_names_it(serve, sent, status, named):
    """400 for a form that cannot be read, 422 for one whose content is wrong."""
    async with serve() as client:
        answer = await client.post("/score", **sent)

    assert status == answer.status_code
    assert named in answer.json()["detail"]


async def test_one_item_needs_no_list(serve):
    """`prompt` with `image` is an item, with an item's id."""
    async with serve() as client:
        answer = await client.post("/score", json={"id": "x", "prompt": "a cat", "image": [b64(png())] * 2})

    assert ["x"] == [each["id"] for each in answer.json()["results"]]


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": "a cat", "image": b64(png()), "items": [{"prompt": "a cat", "image": b64(png())}]},
        {"prompt": "a cat", "image": b64(png()), "images": [b64(png())]},
        {"image": b64(png())},
        {"prompt": "a cat", "images": [b64(png())], "id": "x"},
    ],
    ids=["with items", "with images", "without a prompt", "an id of many"],
)
async def test_forms_are_not_mixed(serve, body):
    """422: it would not be clear which picture has which text."""
    async with serve() as client:
        refused(await client.post("/score", json=body), 422, "invalid")


async def test_json_needs_no_content_type(serve):
    """A body without a declared type is read as JSON."""
    content = json.dumps({"prompt": "a cat", "image": b64(png())}).encode()
    async with serve() as client:
        answer = await client.post("/score", content=content)

    assert "content-type" not in answer.request.headers
    assert 200 == answer.status_code, answer.text


TYPOS = [
    ({"metric": ["vqascore"]}, "/metric", "metrics", "items"),
    ({"metrics": ["vqascor"]}, "/metrics/0", "vqascore", "clipscore"),
    ({"options": {"vqascor": {}}}, "/options/vqascor", "vqascore", "dsg"),
    ({"options": {"vqascore": {"outptu": "logit"}}}, "/options/vqascore/outptu", "output", "normalization"),
    (
        {"options": {"dsg": {"question_set": [{"id": 1, "text": "?", "depend_on": []}]}}},
        "/options/dsg/question_set/0/depend_on",
        "depends_on",
        "text",
    ),
]


@pytest.mark.parametrize(("typed", "pointer", "meant", "other"), TYPOS, ids=[typo[1] for typo in TYPOS])
async def test_a_mistyped_name_gets_the_one_that_was_meant(serve, typed, pointer, meant, other):
    """With the other valid names, and a link to the page about the API."""
    async with serve() as client:
        answer = await client.post("/score", json={"prompt": "a cat", "image": b64(png()), **typed})

    problem = answer.json()
    [fault] = problem["errors"]
    assert (422, pointer, meant) == (answer.status_code, fault["pointer"], fault["did_you_mean"])
    assert {meant, other} <= set(fault["valid"])
    assert "/docs" == problem["docs"]


async def test_a_name_like_no_other_gets_the_valid_ones_alone(serve):
    """At most twenty of them."""
    async with serve() as client:
        answer = await client.post("/score", json={"items": [{"prompt": "a", "image": b64(png()), "zzz": 1}]})

    [fault] = answer.json()["errors"]
    assert "did_you_mean" not in fault
    names = {"id", "prompt", "image", "references", "source", "options", "orient", "start", "end", "fps"}
    assert sorted(names) == fault["valid"]
