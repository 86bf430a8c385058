"""Question sets: written once, checked, stored, pinned, and folded into a DSG score."""

import asyncio
import gzip
import json
import math
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from service.context import Context
from service.errors import NoQuestions, QuestionLLMFailed
from service.metrics.dsg import moot
from service.questions.sets import Question, QuestionSet, parse
from service.questions.sqlite_store import SQLiteStore
from service.questions.writer import Questions, question_call
from service.telemetry import Instruments
from tests.conftest import item

pytestmark = pytest.mark.anyio

CHAIN = (Question(1, "a"), Question(2, "b", depends_on=(1,)), Question(3, "c", depends_on=(2,)))


async def post(client, path, body):
    return await client.post(path, json=body)


def dsg(*items, **options):
    return {"items": list(items), "metrics": ["dsg"], "options": {"dsg": options}, "explain": True}


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


class FakeHandle:
    """A question LLM that answers what it is told, and keeps in which lane it was asked."""

    def __init__(self, info):
        self.info, self.asked, self.lifted = info, [], []
        self.answers = asyncio.Queue()

    async def ask(self, calls, context):
        self.asked.append(context.lane)
        return [await self.answers.get()]

    def lift(self, call):
        self.lifted.append(call.seed)


async def test_a_second_try_hurries_too_once_an_urgent_caller_waits(fakes, tmp_path):
    """The first answer is none; the next try does not go behind the bulk sets."""
    llm = FakeHandle(replace(fakes["questions"].info, family="openai"))
    instruments = Instruments(["questions"])
    async with SQLiteStore(tmp_path / "sets", 9) as store:
        questions = Questions(store, llm, 60.0, instruments)
        tasks = []
        for lane, progress in (("bulk", llm.asked), ("interactive", llm.lifted)):
            context = Context("", math.inf, lane, instruments)
            tasks.append(asyncio.create_task(questions.of("a red dog", "dsg", context)))
            while not progress:
                await asyncio.sleep(0.001)
        llm.answers.put_nowait("no JSON")
        llm.answers.put_nowait(fakes["questions"].answer(question_call("a red dog", "dsg")))
        sets = await asyncio.gather(*tasks)

    assert ["miss", "coalesced"] == [found for _, found in sets]
    assert (["bulk", "interactive"], [0, 1]) == (llm.asked, llm.lifted)


def prompts(llm):
    """What the LLM was asked about, in order."""
    return [call.user.split("prompt: ")[1] for call in llm.calls]


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


async def test_sets_outlive_the_process(serve, fakes):
    """A second service on the same file finds what the first one wrote."""
    body = dsg(item("a red dog"))
    async with serve() as client:
        first = (await post(client, "/score", body)).json()["results"][0]
    async with serve() as client:
        second = (await post(client, "/score", body)).json()["results"][0]

    assert ("miss", "hit") == (first["cache"]["dsg"], second["cache"]["dsg"])
    assert 1 == len(fakes["questions"].calls)


async def test_another_model_or_prompt_asks_again(serve, fakes):
    """The lookup key holds everything the answer depends on."""
    async with serve() as client:
        await post(client, "/score", dsg(item("a red dog")))
        await post(client, "/score", dsg(item("a red dog ")))
    fakes["questions"].info = replace(fakes["questions"].info, revision="2")
    async with serve() as client:
        await post(client, "/score", dsg(item("a red dog")))

    assert 3 == len(fakes["questions"].calls)


async def test_questions_are_written_ahead_and_read_by_id(serve):
    """POST /questions warms the store; GET /questions/{id} shows the set and who wrote it."""
    async with serve() as client:
        body = {"prompts": ["a red dog", "nothing"]}
        made = (await post(client, "/questions", body)).json()["sets"]
        again = (await post(client, "/questions", body)).json()["sets"]
        shown = (await client.get(f"/questions/{made[0]['id']}")).json()
        missing = await client.get("/questions/sha256:" + "0" * 64)

    assert (False, True) == (made[0]["cached"], again[0]["cached"])
    assert "no_questions" == made[1]["error"]["code"]
    assert made[0]["questions"] == shown["questions"]
    assert "fake-questions@1" == shown["provenance"]["llm"]
    assert (404, "unknown_question_set") == (missing.status_code, missing.json()["code"])


async def test_a_lookup_key_is_no_id(serve, tmp_path):
    """The two hashes are never mixed, not even in memory."""
    async with serve() as client:
        await post(client, "/questions", {"prompts": ["a red dog"]})
        with sqlite3.connect(tmp_path / "questions.sqlite3") as connection:
            [[key]] = connection.execute("SELECT key FROM lookups")
        connection.close()
        answer = await client.get(f"/questions/{key}")

    assert 404 == answer.status_code


async def test_questions_that_all_fail_are_502(serve, fakes):
    """502 only when nothing was produced."""
    fakes["questions"].texts = {"bad": "no JSON"}
    async with serve() as client:
        all_bad = await post(client, "/questions", {"prompts": ["bad"]})
        one_bad = await post(client, "/questions", {"prompts": ["bad", "a red dog"]})

    assert (502, "question_llm_failed") == (all_bad.status_code, all_bad.json()["code"])
    assert (200, "question_llm_failed") == (
        one_bad.status_code,
        one_bad.json()["sets"][0]["error"]["code"],
    )


async def test_a_set_can_be_pinned_by_id_or_brought_along(serve, fakes):
    """Both score without asking the question LLM; a set of another prompt is refused."""
    async with serve() as client:
        [made] = (await post(client, "/questions", {"prompts": ["a red dog"]})).json()["sets"]
        calls = len(fakes["questions"].calls)
        own = [{key: q[key] for key in ("id", "text", "kind", "depends_on")} for q in made["questions"]]
        by_id = dsg(item("a red dog"), question_set=made["id"])
        brought = dsg(item("a red dog"), question_set=own)
        pinned = [(await post(client, "/score", body)).json()["results"][0] for body in (by_id, brought)]
        other = dsg(item("a blue cat"), question_set=made["id"])
        refused = (await post(client, "/score", other)).json()["results"][0]

    assert calls == len(fakes["questions"].calls)
    assert pinned[0]["scores"] == pinned[1]["scores"]
    assert [made["id"]] * 2 == [p["details"]["dsg"]["question_set"] for p in pinned]
    assert "invalid" == refused["errors"]["dsg"]["code"]


async def test_without_a_question_llm_sets_brought_along_still_score(serve, fakes):
    """No LLM is needed where the questions are given; where they are not, dsg says what is missing."""
    del fakes["questions"]
    own = [{"id": 1, "text": "Is there a dog?"}]
    async with serve() as client:
        given = (await post(client, "/score", dsg(item("a dog"), question_set=own))).json()
        missing = await post(client, "/score", dsg(item("a dog")))

    assert "dsg" in given["results"][0]["scores"]
    assert (503, "not_ready") == (missing.status_code, missing.json()["code"])


async def test_a_failed_llm_fails_the_metric_and_nothing_else(serve, fakes):
    """vqascore of the same item is there; dsg is an entry, never 0."""
    fakes["questions"].texts = {"a red dog": "{"}
    async with serve() as client:
        body = {"items": [item("a red dog"), item("a blue cat")], "metrics": ["vqascore", "dsg"]}
        bad, good = (await post(client, "/score", body)).json()["results"]

    assert {"vqascore"} == bad["scores"].keys()
    assert "question_llm_failed" == bad["errors"]["dsg"]["code"]
    assert {"vqascore", "dsg"} == good["scores"].keys()


@pytest.mark.parametrize(
    ("dependencies", "zeroed"),
    [("direct", {2: [1]}), ("transitive", {2: [1], 3: [2]}), ("none", {})],
)
def test_children_of_a_no_count_nothing(dependencies, zeroed):
    """Direct parents as the released code has it; transitive as the paper writes it."""
    yes = {1: False, 2: True, 3: True}

    assert zeroed == moot(CHAIN, yes, dependencies)


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
def test_an_answer_that_is_no_sound_set_is_refused(text):
    """Broken JSON, wrong types, unknown parents, cycles, twins, empty questions."""
    with pytest.raises(QuestionLLMFailed):
        parse(text, "prompt", "dsg", {})


def test_an_empty_set_is_no_score():
    """Nothing to ask is an error of its own, since a mean over nothing is no number."""
    with pytest.raises(NoQuestions):
        parse('{"questions": []}', "prompt", "dsg", {})


def test_the_id_names_the_content_and_nothing_else():
    """Same prompt, style and questions: same id, whoever wrote them; any difference changes it."""
    base = QuestionSet("a dog", "dsg", CHAIN, {"llm": "one"})

    assert base.id == replace(base, provenance={"llm": "other"}).id
    others = [
        replace(base, prompt="a cat"),
        replace(base, style="tifa"),
        replace(base, questions=CHAIN[:2]),
    ]
    assert 4 == len({base.id, *(other.id for other in others)})


async def test_the_memory_in_front_of_the_store_is_bounded(tmp_path):
    """The least recently used sets leave memory and are found on disk."""
    sets = [QuestionSet(f"prompt {n}", "dsg", CHAIN, {"llm": "x"}) for n in range(5)]
    async with SQLiteStore(tmp_path / "sets.sqlite3", in_memory=2) as store:
        for n, made in enumerate(sets):
            await store.put(f"key {n}", made)
        found = [await store.find(f"key {n}") for n in range(5)]

    assert sets == found
    assert {"llm": "x"} == found[0].provenance
    assert 2 == len(store._recent)


def test_scores_of_tifa160_are_the_released_ones():
    """795 images, 3 dependency rules: the mean that the released code gives (tests/golden/README.md)."""
    path = Path(__file__).parent / "golden" / "dsg_tifa160.json.gz"
    for _, _, asked, *expected in json.loads(gzip.decompress(path.read_bytes())):
        questions = [Question(n, str(n), depends_on=tuple(parents)) for n, parents, _ in asked]
        yes = {n: bool(said) for n, _, said in asked}
        for rule, score in zip(("direct", "transitive", "none"), expected, strict=True):
            zeroed = moot(questions, yes, rule)
            counted = [yes[q.id] and q.id not in zeroed for q in questions]

            assert score == pytest.approx(sum(counted) / len(counted), abs=1e-6)
