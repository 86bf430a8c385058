"""A question LLM that takes no more: who is refused, who is not, and what they are told."""

import asyncio
import math
from contextlib import nullcontext

import pytest

from service.core.errors import DeadlineExceeded, Overloaded
from service.observability.instruments import Instruments
from service.questions.stores.sqlite import SQLiteStore
from service.questions.styles.dsg import DSG
from service.questions.writer import QuestionWriter
from service.serving.context import Context
from tests.support.fakes import FakeQuestionLLM

pytestmark = pytest.mark.anyio


class Busy(FakeQuestionLLM):
    """Never gets round to a call, which waits in the queue or is given up there."""

    name = "questions"

    def __init__(self, gives_up):
        super().__init__()
        self.gives_up = gives_up

    def admit(self, context, demand):
        """Takes everything."""

    def used_by(self, context):
        return nullcontext()

    def shared_by(self, context, work):
        """It never goes."""

    async def call(self, calls, context):
        if self.gives_up:
            return [DeadlineExceeded(stage="queue")]
        try:
            await asyncio.Event().wait()
        finally:
            context.calls.stage = "queue"


@pytest.mark.parametrize("gives_up", [False, True])
async def test_a_set_that_waits_behind_others_until_its_time_is_over_is_refused(tmp_path, gives_up):
    """The LLM never saw it, so it is no error of the LLM's."""
    instruments = Instruments(["questions"])
    async with SQLiteStore(tmp_path / "sets", 9) as store:
        writer = QuestionWriter(store, {"questions": 0.01}, instruments)
        context = Context("", math.inf, "bulk", instruments)
        with pytest.raises(Overloaded, match=r"busy with others for 0\.01 s"):
            await writer.of("a dog", DSG, Busy(gives_up), context)

    assert 0 == sum(
        sample.value
        for metric in instruments.question_llm_calls.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    )
