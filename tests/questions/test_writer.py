"""Question sets are written once, in the lane of who waits for them, and checked."""

import asyncio
import json
import math
from dataclasses import replace

import pytest

from models.outcomes import Text
from service.context import Context
from service.errors import NoQuestions, QuestionLLMFailed
from service.questions.stores.sqlite import SQLiteStore
from service.questions.styles.dsg import DSG
from service.questions.writer import QuestionWriter, lookup_key
from service.telemetry import Instruments
from tests.conftest import item
from tests.support.dsg import dsg, post

pytestmark = pytest.mark.anyio


class FakeHandle:
    """A question LLM that answers what it is told, and keeps in which lane it was asked."""

    name = "questions"

    def __init__(self, info):
        self.info, self.asked, self.promoted = info, [], []
        self.answers = asyncio.Queue()

    def admit(self, context, demand):
        """Takes everything."""

    async def ask(self, calls, context):
        self.asked.append(context.lane)
        with context.promoting(lambda: self.promoted.append(calls[0].seed)):
            return [await self.answers.get()]


async def written(text, fakes, tmp_path):
    """The set that becomes of one answer of the question LLM."""
    llm = FakeHandle(replace(fakes["questions"].info, repeatable=True))
    llm.answers.put_nowait(Text(text))
    instruments = Instruments(["questions"])
    async with SQLiteStore(tmp_path / "sets", 9) as store:
        writer = QuestionWriter(store, {"questions": 60.0}, instruments)
        context = Context("", math.inf, "interactive", instruments)
        made, _ = await writer.of("prompt", DSG, llm, context)
        return made


def prompts(llm):
    """What the LLM was asked about, in order."""
    return [call.user.split("prompt: ")[1] for call in llm.calls]


async def waiting(client):
    """How many calls of the question LLM wait, by lane."""
    series = 'scoregate_queue_depth{lane="'
    lines = (await client.get("/metrics")).text.splitlines()
    depths = {
        line.split('"')[1]: float(line.rpartition(" ")[2])
        for line in lines
        if line.startswith(series) and 'model="questions"' in line
    }
    return {lane: depth for lane, depth in depths.items() if depth}


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
            while not llm.held or before != (await waiting(client)).get("bulk", 0):
                await asyncio.sleep(0.001)
        urgent = asyncio.create_task(post(client, "/score", dsg(item("a red dog"))))
        while "interactive" not in await waiting(client):
            await asyncio.sleep(0.001)
        llm.hold.set()
        answers = await asyncio.gather(*bulk, urgent)

    assert [200] * 4 == [answer.status_code for answer in answers]
    assert ["a busy bee", "a red dog", "a patient ox"] == prompts(llm)


async def test_a_second_try_hurries_too_once_an_urgent_caller_waits(fakes, tmp_path):
    """The first answer is bad; the next try does not go behind the bulk sets."""
    llm = FakeHandle(fakes["questions"].info)
    instruments = Instruments(["questions"])
    async with SQLiteStore(tmp_path / "sets", 9) as store:
        writer = QuestionWriter(store, {"questions": 60.0}, instruments)
        tasks = []
        for lane, progress in (("bulk", llm.asked), ("interactive", llm.promoted)):
            context = Context("", math.inf, lane, instruments)
            tasks.append(asyncio.create_task(writer.of("a red dog", DSG, llm, context)))
            while not progress:
                await asyncio.sleep(0.001)
        llm.answers.put_nowait(Text("no JSON"))
        llm.answers.put_nowait(fakes["questions"].answer(DSG.call("a red dog")))
        sets = await asyncio.gather(*tasks)

    assert ["miss", "coalesced"] == [found for _, found in sets]
    assert (["bulk", "interactive"], [0]) == (llm.asked, llm.promoted)


async def test_a_set_that_was_written_while_the_llm_was_replaced_is_written_anew(fakes, tmp_path):
    """Its key and its provenance name the LLM that wrote it, and never the other one."""
    llm, instruments = FakeHandle(fakes["questions"].info), Instruments(["questions"])
    async with SQLiteStore(tmp_path / "sets", 9) as store:
        writer = QuestionWriter(store, {"questions": 60.0}, instruments)
        old = lookup_key("a red dog", DSG, llm.info.label)
        context = Context("", math.inf, "bulk", instruments)
        task = asyncio.create_task(writer.of("a red dog", DSG, llm, context))
        while not llm.asked:
            await asyncio.sleep(0.001)
        llm.info = replace(llm.info, id="newer")
        for _ in range(2):
            llm.answers.put_nowait(fakes["questions"].answer(DSG.call("a red dog")))
        made, found = await task
        stored = await store.find(old), await store.find(lookup_key("a red dog", DSG, llm.info.label))

    assert ("miss", "newer@1") == (found, made.provenance["llm"])
    assert (None, made) == stored


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


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '{"questions": 1}',
        '{"questions": [{"id": 1}]}',
        '{"questions": [{"id": "1", "kind": "", "text": "a", "depends_on": []}]}',
        '{"questions": [{"id": true, "kind": "", "text": "a", "depends_on": []}]}',
        '{"questions": [{"id": 1, "kind": "", "text": "", "depends_on": []}]}',
        '{"questions": [{"id": 1, "kind": "", "text": "a", "depends_on": [2]}]}',
        '{"questions": [{"id": 1, "kind": "", "text": "a", "depends_on": [1]}]}',
        '{"questions": [{"id": 1, "kind": "", "text": "a", "depends_on": "1"}]}',
        json.dumps({"questions": [{"id": 1, "kind": "", "text": "a", "depends_on": []}] * 2}),
        '{"questions": [{"id": 1, "kind": "", "text": "a", "depends_on": [2]},'
        ' {"id": 2, "kind": "", "text": "b", "depends_on": [1]}]}',
    ],
)
async def test_an_answer_that_is_no_sound_set_is_refused(fakes, tmp_path, text):
    """Broken JSON, wrong types, unknown parents, cycles, twins, empty questions."""
    with pytest.raises(QuestionLLMFailed):
        await written(text, fakes, tmp_path)


async def test_an_empty_set_is_no_score(fakes, tmp_path):
    """Nothing to ask is an error of its own, since a mean over nothing is not a number."""
    with pytest.raises(NoQuestions):
        await written('{"questions": []}', fakes, tmp_path)
