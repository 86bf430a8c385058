"""`items[].metrics`: an item's own metrics in place of those of the request."""

from dataclasses import replace

import pytest

from tests.support.pictures import b64, item, png
from tests.support.refusals import refused

pytestmark = pytest.mark.anyio

TEXT, COUNT = item("a red square", metrics=["clipscore"]), item("a blue cat", metrics=["dsg", "vqascore"])


async def scored(client, items, **fields):
    answer = await client.post("/score", json={"items": items, **fields})
    assert 200 == answer.status_code, answer.text
    return answer.json()


async def test_each_item_is_scored_by_its_own_metrics_alone(serve, fakes):
    """The models of others get no call of it, and the request's metrics score what names none."""
    async with serve() as client:
        answer = await scored(client, [TEXT, COUNT, item("a dog")], metrics=["vqascore"])

    assert [{"clipscore"}, {"dsg", "vqascore"}, {"vqascore"}] == [
        each["scores"].keys() for each in answer["results"]
    ]
    assert {"a red square"} == {call.text for call in fakes["clip"].calls if hasattr(call, "text")}
    assert all("a blue cat" in call.user for call in fakes["questions"].calls)
    assert "a red square" not in "".join(call.question for call in fakes["vqa"].calls)
    assert {"vqa", "clip", "questions"} == answer["models"].keys()
    assert {"clipscore", "dsg", "vqascore"} == answer["provenance"]["options"].keys()


@pytest.mark.shared
async def test_an_items_score_is_that_of_a_request_with_its_metrics(serve):
    """Whatever the neighbours are scored by."""
    async with serve() as client:
        mixed = await scored(client, [TEXT, COUNT])
        alone = [
            (await scored(client, [{**each, "metrics": None}], metrics=each["metrics"]))["results"][0]
            for each in (TEXT, COUNT)
        ]

    assert [each["scores"] for each in alone] == [each["scores"] for each in mixed["results"]]


@pytest.mark.shared
async def test_the_options_of_an_item_hold_for_its_own_metrics(serve):
    """They stand over those of the request, which may name options of a metric that one item alone has."""
    own = {"clipscore": {"scale": "cosine"}}
    items = [TEXT, {**TEXT, "options": own}, COUNT]
    async with serve() as client:
        answer = await scored(client, items, options={"clipscore": {"scale": "hessel"}}, explain=True)

    scales = [each["details"]["clipscore"]["scale"] for each in answer["results"][:2]]
    assert ["hessel", "cosine"] == scales
    assert [False, True, False] == ["options" in each for each in answer["results"]]
    assert "hessel" == answer["provenance"]["options"]["clipscore"]["scale"]


@pytest.mark.parametrize("names", [[], ["clipscore", "clipscore"], "clipscore"])
async def test_metrics_of_an_item_are_a_list_of_different_names(serve, names):
    """As those of the request are."""
    async with serve() as client:
        problem = refused(await client.post("/score", json={"items": [item(metrics=names)]}), 422, "invalid")

    assert problem["errors"][0]["pointer"].startswith("/items/0/metrics")


async def test_an_unknown_metric_of_an_item_is_named_with_its_place(serve):
    """Before anything is scored; the names that would do are listed."""
    async with serve() as client:
        answer = await client.post("/score", json={"items": [TEXT, item(metrics=["vqascore", "clipscor"])]})

    [error] = refused(answer, 422, "unknown_metric")["errors"]
    assert "/items/1/metrics/1" == error["pointer"]
    assert "clipscore" == error["did_you_mean"]


async def test_the_requests_metrics_must_be_served_only_if_an_item_needs_them(serve, fakes):
    """A service without a VQA model scores items that name others; the default is vqascore."""
    del fakes["vqa"]
    async with serve() as client:
        answer = await scored(client, [TEXT])
        refused(await client.post("/score", json={"items": [TEXT, item("a dog")]}), 422, "unknown_metric")

    assert {"clipscore"} == answer["results"][0]["scores"].keys()


@pytest.mark.shared
async def test_a_picture_that_only_another_items_metrics_use_is_refused(serve):
    """References and a source belong to metrics of the same item."""
    async with serve() as client:
        beside = item("a dog", metrics=["clipscore"], references=[b64(png())])
        answer = await client.post("/score", json={"items": [beside], "metrics": ["judge"]})

    [error] = refused(answer, 422, "invalid")["errors"]
    assert "/items/0/references" == error["pointer"]


async def test_words_are_warned_of_under_the_models_of_the_item_alone(serve, fakes):
    """A vocabulary of the VQA model says nothing about an item that only CLIP scores."""
    fakes["vqa"].info = replace(fakes["vqa"].info, vocabulary=frozenset({"a"}))
    async with serve() as client:
        answer = await scored(client, [TEXT, COUNT])

    assert [1] == [each["item"] for each in answer["warning_codes"] if each["code"] == "unknown_words"]
