"""Styles in the form of the papers' code: the messages, and the parsing of the lines and blocks."""

import json

import pytest

from service.questions.sets import Question, check
from service.questions.style import parsers

pytestmark = pytest.mark.anyio

PROMPT = "a red dog"
LABELLED = "(1)[a, count, 0.0] {2}[red, color, 0.5] (3)[dog, entity, 1.0]"
BLOCKS = """About {1}:
Q: is the dog red?
Choices: yes, no
A: yes
About {2}:
Q: what animal is it?
Choices: dog, cat
A: dog"""
TIFA = """: dog
Questions and answers are below:
About dog (animal):
Q: is there a dog?
Choices: yes, no
A: yes
Q: what is there?
Choices: cat, fox
A: dog
About red (tint):
Q: is it red?
Choices: yes, no
A: yes
About red (color):
Q: is there a dog?
Choices: yes, no
A: yes
Q: what color is the dog?
A: red

Description: a blue cat
About cat (animal):
Q: is there a cat?
Choices: yes, no
A: yes"""


def style(parser, *texts):
    """The style of a parser, whose calls have those texts."""
    found = parsers()[parser]
    return found.make("mine", dict(zip(found.calls, texts, strict=True)))


async def written(style, *answers):
    """What an LLM that answers so makes of the prompt, and the calls."""
    calls, rest = [], iter(answers)

    async def ask(call):
        calls.append(call)
        return next(rest)

    return await style.write(ask, PROMPT), calls


async def test_three_calls_get_the_tuples_unchanged_and_make_one_set():
    """No system message; after the texts come the prompt, the tuples and the word before the answer."""
    tuples = "1 | entity - whole (dog)\n2 | attribute - color (dog, red)"
    made, calls = await written(
        style("dsg_lines", "T", "Q", "D"),
        f"{tuples}\n\ninput: next",
        "output: 1 | Is there a dog?\n2 | Is it red?",
        "1 | 0\n2 | 0, 1, background",
    )

    assert ["", "", ""] == [call.system for call in calls]
    assert "T\n\ninput: a red dog\noutput: " == calls[0].user
    assert [f"{text}\n\ninput: a red dog\n{tuples}\noutput: " for text in "QD"] == [
        call.user for call in calls[1:]
    ]
    assert made.questions == (
        Question(1, "Is there a dog?", "entity - whole"),
        Question(2, "Is it red?", "attribute - color", (1,)),
    )


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (["1 dog"], "a new number, a bar"),
        (["1 | dog\n1 | cat"], "a new number, a bar"),
        (["1 | dog", "2 | Is there a dog?"], "are not those of the tuples"),
        (["1 | dog", "1 | Is there a dog?", "1 | 7"], "depends on 7"),
    ],
)
async def test_lines_of_another_form_are_refused(answers, reason):
    """With the reason; nothing is guessed."""
    with pytest.raises(ValueError, match=reason):
        check((await written(style("dsg_lines", "T", "Q", "D"), *answers))[0].questions)


async def test_blocks_are_read_as_the_released_code_reads_them():
    """Without repeated questions, unknown types, missing choices, and answers that are no choice."""
    made, [call] = await written(style("tifa_lines", "I"), TIFA)

    assert ("", "I\n\nDescription: a red dog\nEntities", None) == (call.system, call.user, call.schema)
    assert (Question(1, "is there a dog?", "animal", choices=("yes", "no"), phrase="dog"),) == made.questions


async def test_words_are_labelled_with_their_groundability_first():
    """From 0 to 1; those above 0 are numbered anew, and each question has its word."""
    made, [first, second] = await written(style("gecko_lines", "K", "Q"), LABELLED, BLOCKS)

    assert first.user.startswith("K\n\nDescription:\na red dog\nThe visual-groundable words")
    assert "\na {1}[red, color] {2}[dog, entity]\nGenerated questions" in second.user
    assert [("color", "red"), ("entity", "dog")] == [(q.kind, q.phrase) for q in made.questions]
    assert () == made.unasked


async def test_a_labelled_word_without_a_question_is_reported():
    """As with the service's own instructions."""
    made, _ = await written(style("gecko_lines", "K", "Q"), LABELLED, BLOCKS.partition("\nAbout {2}")[0])

    assert ("dog",) == made.unasked


@pytest.mark.parametrize("label", ["(1)[dog, entity, 2]", "(1)[dog, entity]", "(1)[dog]", "(1)[dog, x, nan]"])
async def test_a_label_without_a_groundability_is_refused(label):
    """Also one outside of 0 to 1."""
    with pytest.raises(ValueError, match="a label is not a word"):
        await written(style("gecko_lines", "K", "Q"), label)


async def test_a_question_about_no_label_is_refused():
    """Its number is none of the labelled text's."""
    with pytest.raises(ValueError, match="about no keyword"):
        await written(style("gecko_lines", "K", "Q"), LABELLED, BLOCKS.replace("{2}", "{3}"))


async def test_released_annotations_have_strings_for_ids():
    """The prompt alone is the user message."""
    entry = {
        "uid": "2",
        "skill": "entities",
        "subskill": None,
        "phrase": "dog",
        "question": "Is it a dog?",
    }
    answer = json.dumps({"annotations": [{**entry, "node_type": "presence", "depends_on": []}]})
    made, [call] = await written(style("skills_uids", "S"), answer)

    assert ("S", PROMPT) == (call.system, call.user)
    assert (Question(2, "Is it a dog?", "entities//presence", phrase="dog"),) == made.questions
    with pytest.raises(ValueError, match="not a string of digits"):
        await written(style("skills_uids", "S"), answer.replace('"2"', "2"))


@pytest.mark.parametrize("parser", parsers().values(), ids=lambda parser: parser.name)
def test_each_text_changes_the_styles_hash(parser):
    """So that sets of other instructions or examples are never reused."""
    texts = dict.fromkeys(parser.calls, "text")
    plain = parser.make("mine", texts)
    changed = [parser.make("mine", {**texts, call: "other"}) for call in parser.calls]

    assert 1 + len(changed) == len({style.hash for style in (plain, *changed)})
    assert plain.hash == parser.make("mine", texts).hash
    assert "mine" == plain.name
