"""The cache of models' answers: what it keeps, what it never keeps, and how much memory that takes."""

import asyncio
from dataclasses import replace

import pytest

from models.core.calls import ImageCall, TextCall
from service.core.errors import ModelFault
from tests.support.app import decoded
from tests.support.pictures import b64, item, png

pytestmark = pytest.mark.anyio


async def score(client, *items, metrics=("vqascore", "clipscore"), **options):
    body = {"items": list(items), "metrics": list(metrics), "options": options}
    return (await client.post("/score", json=body)).json()["results"]


async def test_a_pair_scored_before_is_neither_decoded_nor_given_to_a_model(serve, fakes):
    """The answer says that it is a hit, and so do the instruments."""
    async with serve() as client:
        first = await score(client, item())
        calls = len(fakes["vqa"].calls), len(fakes["clip"].calls)
        for name in ("vqa", "clip"):
            fakes[name].prepare = fakes[name].score = None
        before = decoded(client)
        second = await score(client, item())
        again = decoded(client) - before
        metrics = (await client.get("/metrics")).text

    assert ((1, 2), 1, 0) == (calls, before, again)
    assert first[0]["scores"] == second[0]["scores"]
    assert {"vqascore": "miss", "clipscore": "miss"} == first[0]["cache"]
    assert {"vqascore": "hit", "clipscore": "hit"} == second[0]["cache"]
    assert 'scoregate_cache_requests_total{cache="scores",result="miss"} 3.0' in metrics
    assert 'scoregate_cache_requests_total{cache="scores",result="hit"} 3.0' in metrics


async def test_all_options_of_a_metric_share_one_answer(serve, fakes):
    """What is kept is what the model said; another question or answer is another call."""
    async with serve() as client:
        await score(client, item(), metrics=["vqascore"])
        same = await score(client, item(), metrics=["vqascore"], vqascore={"normalization": "product"})
        logit = await score(client, item(), metrics=["vqascore"], vqascore={"output": "logit"})
        other = await score(client, item(), metrics=["vqascore"], vqascore={"answer": "No"})

    assert ["hit", "hit", "miss"] == [r[0]["cache"]["vqascore"] for r in (same, logit, other)]
    assert 2 == len(fakes["vqa"].calls)


async def test_an_image_embedded_before_is_not_embedded_again_for_another_prompt(serve, fakes):
    """The metric is a miss, since one of its calls was."""
    async with serve() as client:
        await score(client, item("a dog"), metrics=["clipscore"])
        again = await score(client, item("a cat"), metrics=["clipscore"])

    assert {"clipscore": "miss"} == again[0]["cache"]
    assert [ImageCall, TextCall, TextCall] == [type(call) for call in fakes["clip"].calls]


async def test_other_bytes_are_another_image(serve, fakes):
    """Whatever they look like."""
    async with serve() as client:
        await score(client, item(image=b64(png("red"))), metrics=["vqascore"])
        other = await score(client, item(image=b64(png("red", mode="RGBA"))), metrics=["vqascore"])

    assert {"vqascore": "miss"} == other[0]["cache"]


async def test_frames_are_a_hit_where_each_of_them_is(serve):
    """One new frame makes the item a miss."""
    red, blue = b64(png("red")), b64(png("blue"))
    async with serve() as client:
        await score(client, item(image=red), metrics=["vqascore"])
        partly = await score(client, item(image=[red, blue]), metrics=["vqascore"])
        wholly = await score(client, item(image=[red, blue]), metrics=["vqascore"])

    assert ["miss", "hit"] == [r[0]["cache"]["vqascore"] for r in (partly, wholly)]


async def test_dsg_tells_how_its_questions_were_found_and_shares_the_answers(serve, fakes):
    """Questions sent along are found nowhere, so there the answers decide."""
    own = {"question_set": [{"id": 1, "text": "Is it red?"}]}
    async with serve() as client:
        first = await score(client, item("a red dog"), metrics=["dsg"])
        asked = len(fakes["vqa"].calls)
        second = await score(client, item("a red dog"), metrics=["dsg"])
        third = await score(client, item("a red dog"), metrics=["dsg"], dsg=own)
        fourth = await score(client, item("a red dog"), metrics=["dsg"], dsg=own)

    assert ["miss", "hit", "miss", "hit"] == [r[0]["cache"]["dsg"] for r in (first, second, third, fourth)]
    assert asked + 1 == len(fakes["vqa"].calls)


async def test_errors_are_never_kept(serve, fakes):
    """The next request asks anew."""
    async with serve() as client:
        example = fakes["vqa"].example()
        fakes["vqa"].fault = lambda call: None if call == example else RuntimeError("once")
        failed = await score(client, item(), metrics=["vqascore"])
        fakes["vqa"].fault = lambda call: None
        fine = await score(client, item(), metrics=["vqascore"])

    assert ModelFault.code == failed[0]["errors"]["vqascore"]["code"]
    assert "cache" not in failed[0]
    assert {"vqascore": "miss"} == fine[0]["cache"]


async def test_warnings_come_with_a_hit_too(serve, fakes):
    """A text that was cut is still cut."""
    answer = fakes["clip"].answer
    fakes["clip"].answer = lambda call: replace(answer(call), truncated=isinstance(call, TextCall))
    body = {"items": [item()], "metrics": ["clipscore"]}
    async with serve() as client:
        first, second = [(await client.post("/score", json=body)).json() for _ in range(2)]

    assert {"clipscore": "hit"} == second["results"][0]["cache"]
    assert [
        "item 0, clipscore: the prompt was cut at CLIP's context length, or at <|endoftext|> in it"
    ] == second["warnings"]
    assert first["warnings"] == second["warnings"]


async def test_a_model_without_a_revision_is_not_cached(serve, fakes):
    """Nobody could tell its answers from those of other weights."""
    fakes["vqa"].info = replace(fakes["vqa"].info, revision="")
    async with serve() as client:
        results = [await score(client, item(), metrics=["vqascore"]) for _ in range(2)]

    assert ["cache" in result[0] for result in results] == [False, False]
    assert 2 == len(fakes["vqa"].calls)


async def test_the_cache_can_be_off(serve, fakes, tmp_path):
    """Then every call reaches its model and nothing is said of a cache."""
    off = {"scores": "off", "questions": f"sqlite:///{tmp_path}/q"}
    async with serve(cache=off) as client:
        results = [await score(client, item()) for _ in range(2)]
        metrics = (await client.get("/metrics")).text

    assert ["cache" in result[0] for result in results] == [False, False]
    assert 2 == len(fakes["vqa"].calls)
    assert 'scoregate_cache_requests_total{cache="scores",result="miss"} 0.0' in metrics


async def test_equal_calls_at_the_same_time_each_get_an_answer(serve, fakes):
    """They are not joined; all of them are misses with the same score."""
    async with serve() as client:
        answers = await asyncio.gather(*(score(client, item(), item()) for _ in range(8)))

    assert 1 == len({r["scores"]["vqascore"] for results in answers for r in results})
