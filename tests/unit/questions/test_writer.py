"""Question sets are written once, in the lane of who waits for them, and checked."""

import asyncio
import json
import math
from dataclasses import replace

import pytest

from models.core.outcomes import Text
from service.core.errors import ModelChanged, NoQuestions, QuestionLLMFailed
from service.questions.stores.sqlite import SQLiteStore
from service.questions.styles.dsg import DSG
from service.questions.writer import QuestionWriter, lookup_key
from service.serving.context import Context
from tests.support.instruments import unread
from tests.support.question_llm import FakeHandle

pytestmark = pytest.mark.anyio


async def written(text, fakes, tmp_path):
    """The set that becomes of one answer of the question LLM."""
    llm = FakeHandle(replace(fakes["questions"].info, repeatable=True))
    llm.answers.put_nowait(Text(text))
    instruments = unread("questions")
    async with SQLiteStore(tmp_path / "sets", 9) as store:
        writer = QuestionWriter(store, {"questions": 60.0}, instruments)
        context = Context("", math.inf, "interactive", instruments)
        made, _ = await writer.of("prompt", DSG, llm, context)
        return made


async def test_a_second_try_hurries_too_once_an_urgent_caller_waits(fakes, tmp_path):
    """The first answer is bad; the next try does not go behind the bulk sets."""
    llm = FakeHandle(fakes["questions"].info)
    instruments = unread("questions")
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


async def test_a_set_that_was_written_while_the_llm_was_replaced_names_its_writer(fakes, tmp_path):
    """Its key and its provenance: the LLM that was called, not the one that is there afterwards."""
    llm, instruments = FakeHandle(fakes["questions"].info), unread("questions")
    async with SQLiteStore(tmp_path / "sets", 9) as store:
        writer = QuestionWriter(store, {"questions": 60.0}, instruments)
        old, label = lookup_key("a red dog", DSG, llm.info.label), llm.info.label
        context = Context("", math.inf, "bulk", instruments)
        task = asyncio.create_task(writer.of("a red dog", DSG, llm, context))
        while not llm.asked:
            await asyncio.sleep(0.001)
        llm.info = replace(llm.info, id="newer")
        llm.answers.put_nowait(fakes["questions"].answer(DSG.call("a red dog")))
        made, found = await task
        stored = await store.find(old), await store.find(lookup_key("a red dog", DSG, llm.info.label))

    assert ("miss", label) == (found, made.provenance["llm"])
    assert (made, None) == stored


async def test_no_set_is_written_if_the_llm_was_replaced_before_it_was_called(fakes, tmp_path):
    """The set's key names the one before."""
    instruments = unread("questions")

    class Replaced(FakeHandle):
        async def call(self, calls, context):
            self.info = replace(self.info, id="newer")
            context.use(self.name, self.info)

    llm = Replaced(fakes["questions"].info)
    async with SQLiteStore(tmp_path / "sets", 9) as store:
        writer = QuestionWriter(store, {"questions": 60.0}, instruments)
        keys = [lookup_key("a red dog", DSG, f"{id}@1") for id in (llm.info.id, "newer")]
        with pytest.raises(ModelChanged):
            await writer.of("a red dog", DSG, llm, Context("", math.inf, "bulk", instruments))

        assert [None, None] == [await store.find(key) for key in keys]


async def test_sets_of_an_llm_whose_files_were_overwritten_are_written_anew(fakes, tmp_path):
    """Under the same label; one whose revision is the digest of its files keeps its key."""
    llm, instruments = FakeHandle(fakes["questions"].info), unread("questions")
    found = []
    async with SQLiteStore(tmp_path / "sets", 9) as store:
        writer = QuestionWriter(store, {"questions": 60.0}, instruments)
        for files in ("", llm.info.revision, "other", "other"):
            llm.info = replace(llm.info, files=files)
            llm.answers.put_nowait(fakes["questions"].answer(DSG.call("a red dog")))
            context = Context("", math.inf, "bulk", instruments)
            found.append((await writer.of("a red dog", DSG, llm, context))[1])

    assert ["miss", "hit", "miss", "hit"] == found


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
