"""`items[].options`: an item's own options over those of the request."""

import json

import pytest

from tests.support.pictures import b64, item, png
from tests.support.refusals import JSON, refused

pytestmark = pytest.mark.anyio

DOG, CAT = "a red dog", "a blue cat"


async def scored(client, items, metrics=("dsg",), **fields):
    body = {"items": items, "metrics": list(metrics), "explain": True, **fields}
    answer = await client.post("/score", content=json.dumps(body), headers=JSON)
    assert 200 == answer.status_code, answer.text
    return answer.json()["results"]


async def test_each_item_may_pin_the_question_set_of_its_prompt(serve, fakes):
    """Prompts with a pinned set each in one request; the question LLM is asked for none of them."""
    async with serve() as client:
        made = await client.post("/questions", json={"prompts": [DOG, CAT]})
        ids = [one["id"] for one in made.json()["sets"]]
        asked = len(fakes["questions"].calls)
        pinned = [
            item(prompt, options={"dsg": {"question_set": id}})
            for prompt, id in zip((DOG, CAT), ids, strict=True)
        ]
        results = await scored(client, pinned)

    assert ids == [result["details"]["dsg"]["question_set"] for result in results]
    assert asked == len(fakes["questions"].calls)


async def test_an_items_options_stand_over_the_requests_option_by_option(serve, fakes):
    """What the item leaves out is the request's, and what both leave out has its default."""
    shared = {"vqascore": {"question": "Is it {}?", "output": "logit"}, "clipscore": {"scale": "hessel"}}
    own = [{}, {"options": {"vqascore": {"output": "probability"}}}, {"options": {"dsg": {}}}]
    async with serve() as client:
        results = await scored(
            client, [item(**more) for more in own], ["vqascore", "clipscore"], options=shared
        )

    details = [result["details"] for result in results]
    assert ["Is it a red square?"] * 3 == [each["vqascore"]["question"] for each in details]
    assert ["hessel"] * 3 == [each["clipscore"]["scale"] for each in details]
    expected = ["logit", "likelihood", "logit"]
    assert [each["vqascore"][name] for each, name in zip(details, expected, strict=True)] == [
        result["scores"]["vqascore"] for result in results
    ]


@pytest.mark.shared
async def test_an_option_that_is_named_with_its_default_stands_over_the_requests(serve):
    """What counts is what an item names, and not whether it differs from the default."""
    async with serve() as client:
        own = {"clipscore": {"scale": "cosine"}}
        shared = {"clipscore": {"scale": "hessel"}}
        [result] = await scored(client, [item(options=own)], ["clipscore"], options=shared)

    assert "cosine" == result["details"]["clipscore"]["scale"]


@pytest.mark.shared
async def test_a_set_pinned_for_all_is_the_error_of_the_item_that_it_does_not_fit(serve):
    """The others are scored, and the item may name a set of its own."""
    async with serve() as client:
        made = (await client.post("/questions", json={"prompts": [DOG]})).json()["sets"][0]["id"]
        own = {"dsg": {"question_set": [{"id": 1, "text": "Is there a cat?"}]}}
        items = [item(DOG), item(CAT), item(CAT, options=own)]
        results = await scored(client, items, options={"dsg": {"question_set": made}})

    assert [True, False, True] == ["dsg" in result["scores"] for result in results]
    assert "invalid" == results[1]["errors"]["dsg"]["code"]


PLACES = [
    ({"dsg": {"question_set": "sha256:"}}, {}, "/items/1/options/dsg/question_set"),
    ({"dsg": {"question_set": [{"id": 0, "text": "?"}]}}, {}, "/items/1/options/dsg/question_set/0/id"),
    ({"dsg": {"answer": "Yes"}}, {}, "/items/1/options/dsg/answer"),
    ({"bleu": {}}, {}, "/items/1/options/bleu"),
    ({"dsg": None}, {"dsg": {"dependencies": "none"}}, "/items/1/options/dsg"),
    ([], {"dsg": {}}, "/items/1/options"),
    # The item's answer takes the prompt away from where the request has put it: the item is at fault, and
    # its options hold no question that could be named.
    (
        {"vqascore": {"answer": "Yes"}},
        {"vqascore": {"question": "Describe it.", "answer": "{}"}},
        "/items/1/options/vqascore",
    ),
    ({}, {"dsg": {"question": "?"}}, "/options/dsg/question"),
]


@pytest.mark.shared
@pytest.mark.parametrize(("own", "shared", "pointer"), PLACES, ids=lambda value: str(value)[:30])
async def test_a_fault_is_named_where_it_stands_in_the_request(serve, own, shared, pointer):
    """In the item's options or in the request's; each pointer leads to a place that was sent."""
    body = {"items": [item(), item(options=own)], "options": shared}
    async with serve() as client:
        answer = await client.post("/score", content=json.dumps(body), headers=JSON)

    faults = refused(answer, 422, "invalid")["errors"]
    assert pointer == faults[0]["pointer"]
    for fault in faults:
        assert leads_somewhere(fault["pointer"], body)


def leads_somewhere(pointer, body):
    for part in pointer.split("/")[1:]:
        if isinstance(body, list) and int(part) >= len(body):
            return False
        if isinstance(body, dict) and part not in body:
            return False
        body = body[int(part) if isinstance(body, list) else part]
    return True


async def test_the_places_of_the_short_form_are_its_images(serve, fakes):
    """A request that failed as a whole names `/images/0`, and no item that was never sent."""
    async with serve() as client:
        fakes["vqa"].hold.clear()
        body = {"prompt": "a red square", "images": [b64(png()), b64(png("blue"))], "timeout_ms": 50}
        answer = await client.post("/score", json=body)
        fakes["vqa"].hold.set()

    faults = refused(answer, 504, "deadline_exceeded")["errors"]
    assert ["/images/0", "/images/1"] == [fault["pointer"] for fault in faults]
