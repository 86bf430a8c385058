"""Question styles, and what stays as it is when questions get new fields."""

import json
import math
from contextlib import nullcontext

import pytest

from models.core.calls import GenerateCall
from models.core.outcomes import Text
from service.observability.instruments import Instruments
from service.questions.sets import Question, QuestionSet, check, from_json, to_json
from service.questions.stores.sqlite import SQLiteStore
from service.questions.style import Style, WrittenQuestions
from service.questions.styles.dsg import DSG
from service.questions.writer import QuestionWriter, lookup_key
from service.serving.context import Context
from tests.support.fakes import FakeQuestionLLM

pytestmark = pytest.mark.anyio

CHAIN = (Question(1, "a"), Question(2, "b", depends_on=(1,)), Question(3, "c", "kind", depends_on=(2,)))
SET = QuestionSet("a dog", "dsg", CHAIN, {"llm": "x@1"})

# Written by version 0.1.0, before questions had choices.
OLD_ID = "sha256:639d53842d555c3921f5799d266ad7d5dfabaf3ec0dfc28946e442fbaaec9951"
OLD_KEY = "lookup:305d5ea0b4b76e533b581c082deb21da32019a3f2998dc64c4cab72de7d3373a"
OLD = (
    b'{"prompt":"a dog","style":"dsg","questions":['
    b'{"id":1,"text":"a","kind":"","depends_on":[],"expected":"yes"},'
    b'{"id":2,"text":"b","kind":"","depends_on":[1],"expected":"yes"},'
    b'{"id":3,"text":"c","kind":"kind","depends_on":[2],"expected":"yes"}],"provenance":{"llm":"x@1"}}'
)


def test_sets_that_use_no_new_field_keep_their_ids_and_their_form():
    """Pinned ids and stores of before stay as they are; so does the key that finds a prompt's set."""
    assert (OLD_ID, OLD) == (SET.id, to_json(SET))
    assert SET == from_json(OLD, OLD_ID)
    assert OLD_KEY == lookup_key("a dog", DSG, "llm@1")


def test_choices_are_a_part_of_the_content():
    """They change the id, and are stored and read."""
    colour = Question(1, "What colour?", expected="red", choices=("red", "blue"))
    asked = QuestionSet("a red dog", "tifa", (colour,))
    other = QuestionSet("a red dog", "tifa", (Question(1, "What colour?", expected="red"),))

    assert asked.id != other.id
    assert asked == from_json(to_json(asked), asked.id)


def test_an_expected_answer_must_be_one_of_the_choices():
    """Else no picture could get it."""
    check([Question(1, "What colour?", expected="red", choices=("red", "blue"))])
    with pytest.raises(ValueError, match="question 1 is not among its choices"):
        check([Question(1, "What colour?", expected="green", choices=("red", "blue"))])


class InTwoCalls(Style):
    """First the words to ask about, then a question for each."""

    def identity(self):
        return [*super().identity(), "Which words?"]

    async def write(self, ask, prompt):
        words = await ask(GenerateCall("Which words?", prompt))
        asked = [Question(n, await ask(self.call(word))) for n, word in enumerate(json.loads(words), 1)]
        return WrittenQuestions(tuple(asked))


class Scripted(FakeQuestionLLM):
    """Answers by the system message."""

    name = "questions"

    def __init__(self):
        super().__init__()
        self.asked = []

    def admit(self, context, demand):
        """Takes everything."""

    def used_by(self, context):
        return nullcontext()

    def shared_by(self, context, work):
        """It never goes."""

    async def call(self, calls, context):
        [call] = calls
        self.asked.append(call)
        word = call.user.rpartition("prompt: ")[2]
        return [Text('["dog", "cat"]' if call.system == "Which words?" else f"Is there a {word}?")]


async def test_a_style_may_take_several_calls_of_the_llm(tmp_path):
    """Its `write` asks as often as it needs, and the set is stored as any other."""
    style, llm, instruments = InTwoCalls("words", "Ask.", {}, None), Scripted(), Instruments(["questions"])
    async with SQLiteStore(tmp_path / "sets", 9) as store:
        writer = QuestionWriter(store, {"questions": 60.0}, instruments)
        context = Context("", math.inf, "interactive", instruments)
        made, found = await writer.of("a dog and a cat", style, llm, context)
        again, stored = await writer.of("a dog and a cat", style, llm, context)

    assert ["Is there a dog?", "Is there a cat?"] == [question.text for question in made.questions]
    assert ("words", "miss", "hit") == (made.style, found, stored)
    assert made == again
    assert 3 == len(llm.asked)


def test_the_hash_of_a_style_changes_with_what_the_llm_is_told():
    """Instructions, schema and name; new ones find no old set."""
    styles = [
        DSG,
        Style("dsg", "Other words.", DSG.schema, DSG.parse),
        Style("dsg", DSG.instructions, {}, DSG.parse),
        Style("gsd", DSG.instructions, DSG.schema, DSG.parse),
    ]

    assert 4 == len({style.hash for style in styles})
