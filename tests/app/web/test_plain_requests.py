"""Requests as a person types them: plain form fields, one item without a list, no content type."""

import json

import pytest

from tests.support.pictures import b64, png
from tests.support.refusals import refused
from tests.unit.web.test_multipart import form, named

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
    "another picture": ({"data": {"prompt": "a cat"}, "files": {"other": CAT}}, 422, "image"),
    "another file": ({"data": {"prompt": "a cat"}, "files": {"image": CAT, "b": CAT}}, 422, "request"),
    "no picture": (form(named(b"prompt", data=b"a cat")), 400, "image"),
    "metrics twice": (form(*[named(b"metrics", data=b"dsg")] * 2), 400, "separated by commas"),
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


FIELDS = {
    "options": ('{"vqascore": {"output": "logit"}}', {"vqascore": {"output": "logit"}}),
    "explain": ("true", True),
    "orient": ("exif", "exif"),
    "timeout_ms": ("60000", 60_000),
    "priority": ("bulk", "bulk"),
    "id": ("7", "7"),
    "prompt": ("true", "true"),
}


@pytest.mark.parametrize(("field", "value"), FIELDS.items(), ids=FIELDS)
async def test_a_field_of_a_plain_form_is_that_of_the_json(serve, field, value):
    """A text needs no quotes; any other value is written as JSON."""
    async with serve() as client:
        form = await client.post("/score", data={**PLAIN["data"], field: value[0]}, files=PLAIN["files"])
        body = {"prompt": "a cat", "image": b64(CAT[1]), field: value[1]}
        same = await client.post("/score", json=body)

    assert (200, 200) == (form.status_code, same.status_code), form.text
    told, expected = ({**each.json()["results"][0], "cache": {}} for each in (form, same))
    assert expected == told
    assert same.json()["provenance"] == form.json()["provenance"]


MISTYPED = {
    "metric": ({"metric": "clipscore"}, {}, "/metric", "metrics"),
    "promt": ({"promt": "a cat"}, {}, "/promt", "prompt"),
    "reqest": ({"reqest": "{}"}, {}, "/reqest", "request"),
    "a picture imge": ({}, {"imge": CAT}, "/imge", "image"),
    "a picture images": ({}, {"images": CAT}, "/images", "image"),
    "images": ({"images": "x"}, {}, "/images", "image"),
    "an option": ({"options": '{"vqascore": {"outptu": 1}}'}, {}, "/options/vqascore/outptu", "output"),
}


@pytest.mark.parametrize(("fields", "files", "place", "meant"), MISTYPED.values(), ids=MISTYPED)
async def test_a_mistyped_field_of_a_plain_form_gets_the_one_that_was_meant(
    serve, fields, files, place, meant
):
    """422 as for JSON: a field that is dropped would be a score that nobody asked for."""
    async with serve() as client:
        answer = await client.post("/score", data=PLAIN["data"] | fields, files=PLAIN["files"] | files)

    problem = refused(answer, 422, "invalid")
    [fault] = problem["errors"]
    assert (place, meant) == (fault["pointer"], fault["did_you_mean"])
    assert meant in fault["valid"]
    assert len(fault["valid"]) <= 20
    assert "/docs" == problem["docs"]


WRONG = {
    "explain": ({"explain": "yes"}, "/explain"),
    "fps": ({"fps": "NaN"}, "/fps"),
    "timeout_ms": ({"timeout_ms": "9" * 40}, "/timeout_ms"),
    "options": ({"options": "{"}, "/options"),
    "items": ({"items": "[]"}, "/items"),
    "an image without a filename": ({"image": "cat.png"}, "/image"),
}


@pytest.mark.parametrize(("fields", "place"), WRONG.values(), ids=WRONG)
async def test_a_field_of_a_plain_form_with_a_wrong_value_is_named(serve, fields, place):
    """422, by the rules of the JSON."""
    async with serve() as client:
        answer = await client.post("/score", data=PLAIN["data"] | fields, files=PLAIN["files"])

    assert [place] == [fault["pointer"] for fault in refused(answer, 422, "invalid")["errors"]]


async def test_many_unknown_parts_are_named_up_to_twenty(serve):
    """Each costs little, and a problem stays small."""
    files = [(f"p{n}", CAT) for n in range(200)]
    async with serve() as client:
        answer = await client.post("/score", data=PLAIN["data"], files=files)

    assert 20 == len(refused(answer, 422, "invalid")["errors"])


async def test_a_plain_form_ranks_its_pictures(serve):
    """With the fields of a ranking."""
    files = [("image", CAT), ("image", ("dog.png", png("blue")))]
    async with serve() as client:
        answer = await client.post(
            "/rank", data={"prompt": "a cat", "metric": "clipscore", "top_k": "1"}, files=files
        )
        one = await client.post("/rank", data={"prompt": "a cat"}, files=files[:1])
        metrics = await client.post("/rank", data={"prompt": "a cat", "metrics": "dsg"}, files=files)

    assert [True, False] == [each["accepted"] for each in answer.json()["ranking"]]
    assert ["clipscore"] == [*answer.json()["ranking"][0]["scores"]]
    assert 200 == one.status_code, one.text
    assert "metric" == refused(metrics, 422, "invalid")["errors"][0]["did_you_mean"]


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
    ({"metrics": ["VQAScore"]}, "/metrics/0", "vqascore", "clipscore"),
    ({"options": {"vqascor": {}}}, "/options/vqascor", "vqascore", "dsg"),
    ({"options": {"CLIPScore": {}}}, "/options/CLIPScore", "clipscore", "dsg"),
    ({"options": {"vqascore": {"output": "logits"}}}, "/options/vqascore/output", "logit", "probability"),
    ({"orient": "exfi"}, "/orient", "exif", "as_stored"),
    ({"priority": "Bulk"}, "/priority", "bulk", "interactive"),
    ({"options": {"judge": {"labels": "a-e"}}}, "/options/judge/labels", "A-E", "1-5"),
    ({"options": {"vqascore": {"outptu": "logit"}}}, "/options/vqascore/outptu", "output", "normalization"),
    (
        {"options": {"dsg": {"question_set": [{"id": 1, "text": "?", "depend_on": []}]}}},
        "/options/dsg/question_set/0/depend_on",
        "depends_on",
        "text",
    ),
]


@pytest.mark.parametrize(
    ("typed", "pointer", "meant", "other"), TYPOS, ids=[f"{at}={meant}" for _, at, meant, _ in TYPOS]
)
async def test_a_mistyped_name_gets_the_one_that_was_meant(serve, typed, pointer, meant, other):
    """With the other valid names, and a link to the page about the API."""
    async with serve() as client:
        answer = await client.post("/score", json={"prompt": "a cat", "image": b64(png()), **typed})

    problem = answer.json()
    [fault] = problem["errors"]
    assert (422, pointer, meant) == (answer.status_code, fault["pointer"], fault["did_you_mean"])
    assert {meant, other} <= set(fault["valid"])
    assert "/docs" == problem["docs"]


async def test_a_known_metric_that_is_not_served_is_named_as_such(serve):
    """With what would serve it, and not as if another one were meant; a mistyped name may mean it."""
    async with serve() as client:
        faults = [
            refused(
                await client.post("/score", json={"prompt": "a", "image": b64(png()), "metrics": [name]}),
                422,
                "unknown_metric",
            )["errors"][0]
            for name in ("pickscore", "geneval", "PickScore")
        ]

    own, other, mistyped = faults
    assert own["detail"].startswith(
        "pickscore is not served here: it needs a model of its own in the role clip, such as"
        " yuvalkirstain/PickScore_v1, named by the setting metrics.pickscore.model; this server has: vqascore"
    )
    assert other["detail"].startswith("geneval is not served here: it needs a model in the role detector; ")
    assert "did_you_mean" not in own | other
    assert "pickscore" == mistyped["did_you_mean"]
    assert "pickscore" not in own["valid"]


async def test_a_mistyped_style_gets_the_one_that_was_meant(serve):
    """Words of other routes and of an item's own options are in the problem, too."""
    own = {"prompt": "a", "image": b64(png()), "options": {"vqascore": {"output": "Logit"}}}
    async with serve() as client:
        style = await client.post("/questions", json={"prompts": ["a cat"], "style": "dgs"})
        ranked = await client.post("/rank", json={"prompt": "a", "images": [b64(png())], "on_error": "rase"})
        item = await client.post("/score", json={"items": [own]})

    faults = [refused(each, 422, "invalid")["errors"][0] for each in (style, ranked, item)]
    assert ["dsg", "raise", "logit"] == [fault["did_you_mean"] for fault in faults]
    assert "/items/0/options/vqascore/output" == faults[2]["pointer"]
    assert "docs" in style.json()


async def test_a_number_in_the_place_of_a_word_gets_the_valid_words(serve):
    """Like no word, it gets no suggestion."""
    async with serve() as client:
        answer = await client.post("/score", json={"prompt": "a", "image": b64(png()), "orient": 7})

    [fault] = refused(answer, 422, "invalid")["errors"]
    assert ["as_stored", "exif"] == fault["valid"]
    assert "did_you_mean" not in fault


async def test_a_name_like_no_other_gets_the_valid_ones_alone(serve):
    """At most twenty of them."""
    async with serve() as client:
        answer = await client.post("/score", json={"items": [{"prompt": "a", "image": b64(png()), "zzz": 1}]})

    [fault] = answer.json()["errors"]
    assert "did_you_mean" not in fault
    names = {"id", "prompt", "image", "references", "source", "metrics", "options", "orient"}
    assert sorted(names | {"start", "end", "fps"}) == fault["valid"]
