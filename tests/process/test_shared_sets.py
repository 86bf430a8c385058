"""Two services that share a Redis: a prompt's set is written once, and by the other one where one dies."""

import asyncio

import httpx
import pytest

from demo.process import url
from tests.support.double import faulty
from tests.support.pictures import item
from tests.support.service import until

EACH = 24
HELD = "held: a red dog"  # the LLM keeps its device until it is told to go on; the questions do not
WRITTEN = 'scoregate_question_llm_calls_total{result="ok"}'


async def ask(double):
    """The answers to many requests at once; None for one that got none."""
    body = {"items": [item(HELD)], "metrics": ["dsg"], "explain": True, "timeout_ms": 120_000}

    async def one(client):
        try:
            return await client.post("/score", json=body)
        except httpx.TransportError:
            return None

    async with httpx.AsyncClient(base_url=url(double.port), timeout=120, trust_env=False) as client:
        return await asyncio.gather(*(one(client) for _ in range(EACH)))


@pytest.fixture
def doubles(tmp_path, redis):
    shared = {"SCOREGATE_CACHE__QUESTIONS": redis.url}
    places = [tmp_path / name for name in ("one", "two")]
    for place in places:
        place.mkdir()
    with faulty(places[0], **shared) as one, faulty(places[1], **shared) as two:
        yield one, two


def sets_of(answers):
    assert [200] * len(answers) == [answer.status_code for answer in answers]
    results = [answer.json()["results"][0] for answer in answers]
    return {result["details"]["dsg"]["question_set"] for result in results}


def scored(*asked):
    return sets_of([answer for answers in asked for answer in answers])


async def asked_both(one, two, meanwhile):
    """What both answered while something else went on."""
    tasks = [asyncio.create_task(ask(double)) for double in (one, two)]
    await asyncio.to_thread(meanwhile)
    return [await task for task in tasks]


def test_a_new_prompt_is_written_once_by_two_services(doubles):
    """24 requests at each, all at once: one of the two LLMs is asked."""
    one, two = doubles

    def meanwhile():
        until(lambda: one.is_held() or two.is_held())
        holder = one if one.is_held() else two
        until(lambda: all(double.counts()["tasks"] > EACH for double in doubles))
        assert [True, False] == sorted((one.is_held(), two.is_held()), reverse=True)
        holder.release()

    answers = asyncio.run(asked_both(one, two, meanwhile))

    assert 1 == len(scored(*answers))
    assert 1 == sum(double.instrument(WRITTEN) for double in doubles)


def test_when_the_writer_is_killed_the_other_service_writes(doubles):
    """kill -9: every request at the other is answered, and its LLM was asked once."""
    one, two = doubles
    left = []

    def meanwhile():
        until(lambda: one.is_held() or two.is_held())
        holder, other = (one, two) if one.is_held() else (two, one)
        until(lambda: other.counts()["tasks"] > EACH)
        holder.process.kill()
        until(other.is_held)
        other.release()
        left.append(other)

    answers = asyncio.run(asked_both(one, two, meanwhile))
    [other] = left

    assert 1 == len(scored(answers[doubles.index(other)]))
    assert 1 == other.instrument(WRITTEN)
