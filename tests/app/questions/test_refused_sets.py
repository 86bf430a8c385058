"""A question LLM that takes no more: who is refused, who is not, and what they are told."""

import asyncio
import re
from contextlib import asynccontextmanager

import pytest

from tests.support.app import depths
from tests.support.dsg import dsg, post
from tests.support.pictures import item

pytestmark = pytest.mark.anyio

OWN = [{"id": 1, "text": "Is there a dog?"}]
REJECTED = r'scoregate_rejections_total\{reason="(\w+)"\} ([1-9])'


@asynccontextmanager
async def full(serve, llm, lane):
    """A client, the id of a stored set for "a red dog", and a question LLM whose *lane* is full."""
    async with serve(queue={"max_cost": 20}) as client:
        [stored] = (await post(client, "/questions", {"prompts": ["a red dog"]})).json()["sets"]
        llm.hold.clear()
        tasks = []
        for waiting, prompt in enumerate(("a busy bee", "a patient ox", "a proud cat")):
            body = {"prompts": [prompt], "priority": lane}
            tasks.append(asyncio.create_task(post(client, "/questions", body)))
            await until(held_with, llm, client, lane, waiting)
        try:
            yield client, stored["id"]
        finally:
            llm.hold.set()
        answers = await asyncio.gather(*tasks)
    assert [200] * 3 == [answer.status_code for answer in answers]


def held_with(llm, client, lane, waiting):
    return llm.held and depths(client, "questions")[lane] == waiting


async def until(true, *of):
    async with asyncio.timeout(100):
        while not true(*of):
            await asyncio.sleep(0.001)


async def shown(client):
    return (await client.get("/metrics")).text


async def rejections(client):
    return {reason: int(count) for reason, count in re.findall(REJECTED, await shown(client))}


async def test_dsg_needs_no_question_llm_for_sets_that_are_there(serve, fakes):
    """Stored, pinned by an id or sent along: all are scored, and so is what else was asked for."""
    async with full(serve, fakes["questions"], "interactive") as (client, id):
        for options in ({}, {"question_set": id}, {"question_set": OWN}):
            body = dsg(item("a red dog"), **options)
            answer = await post(client, "/score", {**body, "metrics": ["dsg", "vqascore"]})
            assert 200 == answer.status_code
            assert {"dsg", "vqascore"} == answer.json()["results"][0]["scores"].keys()
        assert {} == await rejections(client)


@pytest.mark.parametrize(("lane", "code"), [("interactive", "lane_full"), ("bulk", "overloaded")])
async def test_a_set_that_cannot_be_written_now_is_refused_and_refuses_only_its_metric(
    serve, fakes, lane, code
):
    """With the time to wait; it is no failure of the LLM, and one rejection however many items it had."""
    async with full(serve, fakes["questions"], lane) as (client, _):
        items = [item("a new dog"), item("a new cat")]
        body = {**dsg(*items), "metrics": ["dsg", "vqascore"], "priority": lane}
        answer = await post(client, "/score", body)
        results = answer.json()["results"]
        counted, text = await rejections(client), await shown(client)

    assert 200 == answer.status_code
    assert [code] * 2 == [result["errors"]["dsg"]["code"] for result in results]
    assert all(result["errors"]["dsg"]["retry_after_s"] > 0 for result in results)
    assert [{"vqascore"}] * 2 == [set(result["scores"]) for result in results]
    assert {code: 1} == counted
    assert 'scoregate_question_llm_calls_total{result="error"} 0.0' in text


@pytest.mark.parametrize(
    ("lane", "status", "code"), [("interactive", 429, "lane_full"), ("bulk", 503, "overloaded")]
)
async def test_where_every_set_is_refused_the_whole_request_is(serve, fakes, lane, status, code):
    """`/score` of nothing else, and `/questions`: one rejection each."""
    async with full(serve, fakes["questions"], lane) as (client, _):
        scored = await post(client, "/score", {**dsg(item("a new dog")), "priority": lane})
        written = await post(client, "/questions", {"prompts": ["a new cat"], "priority": lane})
        found = await post(client, "/questions", {"prompts": ["a red dog"], "priority": lane})
        counted = await rejections(client)

    for answer in (scored, written):
        assert (status, code) == (answer.status_code, answer.json()["code"])
        assert answer.json()["retry_after_s"] > 0
        assert "Retry-After" in answer.headers
    assert 200 == found.status_code
    assert {code: 2} == counted


async def test_the_answer_for_no_set_at_all_is_the_most_telling_error(serve, fakes):
    """A failing LLM is told before a prompt that says nothing, whichever comes first."""
    fakes["questions"].texts = {"bad": "no JSON"}
    async with serve() as client:
        answer = await post(client, "/questions", {"prompts": ["nothing", "bad", "nothing at all"]})

    assert (502, "question_llm_failed") == (answer.status_code, answer.json()["code"])


async def test_a_request_for_more_sets_than_there_is_time_for_is_refused_at_once(serve, fakes):
    """As bulk it waits instead; nothing is asked of the LLM for it."""
    llm = fakes["questions"]
    async with serve() as client:
        await post(client, "/questions", {"prompts": ["a red dog"]})
        asked = len(llm.calls)
        body = {"prompts": [f"a dog number {n}" for n in range(128)], "timeout_ms": 1}
        refused = await post(client, "/questions", body)

    assert (429, "lane_full") == (refused.status_code, refused.json()["code"])
    assert "retry_after_s" not in refused.json()
    assert "Retry-After" in refused.headers
    assert asked == len(llm.calls)
