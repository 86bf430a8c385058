"""Question sets are written once, in the lane of who waits for them, and checked."""

import asyncio
from dataclasses import replace

import pytest

from tests.support.app import depths
from tests.support.dsg import dsg, post
from tests.support.pictures import item

pytestmark = pytest.mark.anyio


def prompts(llm):
    """What the LLM was asked about, in order."""
    return [call.user.split("prompt: ")[1] for call in llm.calls]


def waiting(client):
    """How many calls of the question LLM wait, by lane."""
    return {lane: depth for lane, depth in depths(client, "questions").items() if depth}


async def test_a_prompt_is_asked_about_once_however_many_images_arrive_together(serve, fakes):
    """24 requests for one prompt at once: one call of the question LLM."""
    llm = fakes["questions"]
    async with serve() as client:
        llm.hold.clear()
        body = dsg(item("a red dog and a blue cat"))
        tasks = [asyncio.create_task(post(client, "/score", body)) for _ in range(24)]
        while not llm.held:
            await asyncio.sleep(0.001)
        llm.hold.set()
        answers = [(await task).json()["results"][0] for task in tasks]
        metrics = (await client.get("/metrics")).text

    assert 1 == len(llm.calls)
    assert {1} == {len({a["details"]["dsg"]["question_set"]}) for a in answers}
    assert ["coalesced"] * 23 + ["miss"] == sorted(a["cache"]["dsg"] for a in answers)
    assert 'scoregate_question_llm_calls_total{result="ok"} 1.0' in metrics
    assert 'scoregate_cache_requests_total{cache="questions",result="coalesced"} 23.0' in metrics


async def test_an_urgent_caller_hurries_the_set_that_a_bulk_request_has_written(serve, fakes):
    """It goes before the bulk sets that were asked for first, and is written once."""
    llm = fakes["questions"]
    async with serve() as client:
        llm.hold.clear()
        bulk = []
        for before, prompt in enumerate(("a busy bee", "a patient ox", "a red dog")):
            body = {**dsg(item(prompt)), "priority": "bulk"}
            bulk.append(asyncio.create_task(post(client, "/score", body)))
            while not llm.held or before != waiting(client).get("bulk", 0):
                await asyncio.sleep(0.001)
        urgent = asyncio.create_task(post(client, "/score", dsg(item("a red dog"))))
        while "interactive" not in waiting(client):
            await asyncio.sleep(0.001)
        llm.hold.set()
        answers = await asyncio.gather(*bulk, urgent)

    assert [200] * 4 == [answer.status_code for answer in answers]
    assert ["a busy bee", "a red dog", "a patient ox"] == prompts(llm)


async def test_a_set_is_not_bound_to_the_deadline_of_who_asked_for_it_first(serve, fakes):
    """The first caller runs out of time, and the second gets the set."""
    llm = fakes["questions"]
    async with serve() as client:
        llm.hold.clear()
        held = asyncio.create_task(post(client, "/score", dsg(item("a busy bee"))))
        while not llm.held:
            await asyncio.sleep(0.001)
        hasty, patient = (
            asyncio.create_task(post(client, "/score", {**dsg(item("a red dog")), "timeout_ms": timeout}))
            for timeout in (200, 20_000)
        )
        late = await hasty
        llm.hold.set()
        answers = await asyncio.gather(held, patient)

    assert (504, "stage questions") == (late.status_code, late.json()["detail"].rpartition("the ")[2])
    assert [True] * 2 == ["dsg" in answer.json()["results"][0]["scores"] for answer in answers]


async def test_another_model_or_prompt_asks_again(serve, fakes):
    """The lookup key holds everything the answer depends on."""
    async with serve() as client:
        await post(client, "/score", dsg(item("a red dog")))
        await post(client, "/score", dsg(item("a red dog ")))
    fakes["questions"].info = replace(fakes["questions"].info, revision="2")
    async with serve() as client:
        await post(client, "/score", dsg(item("a red dog")))

    assert 3 == len(fakes["questions"].calls)
