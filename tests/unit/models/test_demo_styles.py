"""What the demo question LLM is taught to write: one statement, every style."""

import json
from random import Random

import pytest

from demo.training.exchanges import ANSWERS, answers, exchange
from demo.training.language import Mention, Statement, scene_graph
from demo.training.question_prompts import MIX, any_statement
from demo.training.styles import STYLES, tifa
from models.families.question_llm import user_message

RED_CIRCLE, BLUE_CIRCLE, BLUE_SQUARE = (
    Mention("circle", "red"),
    Mention("circle", "blue"),
    Mention("square", "blue"),
)
LEFT = Statement("relation", RED_CIRCLE, BLUE_SQUARE, "left of")
TWO_CIRCLES = Statement("binding", RED_CIRCLE, BLUE_CIRCLE)
THREE = Statement("count", Mention("circle", "red"), number=3)
NONE = Statement("negation", Mention("star", "green"))
OPEN = ("Where", "What", "How")


def drawn(count: int = 300) -> list[Statement]:
    random = Random("styles")
    return [any_statement(random.choice(MIX), random) for _ in range(count)]


def entries(style: str, statement: Statement) -> list[dict[str, object]]:
    return STYLES[style][1](statement)


def texts(style: str, statement: Statement) -> list[str]:
    return [str(entry["text"]) for entry in entries(style, statement)]


def test_every_relation_is_asked_for_openly_and_by_yes_or_no() -> None:
    assert texts("tifa", LEFT)[-2:] == [
        "Where is the red circle relative to the blue square?",
        "Is the red circle left of the blue square?",
    ]


@pytest.mark.parametrize("style", ["tifa", "gecko questions"])
def test_the_expected_answer_is_one_of_the_choices(style: str) -> None:
    asked = [entry for statement in drawn() for entry in entries(style, statement)]
    assert all(entry["answer"] in entry["choices"] for entry in asked)


def test_the_order_of_the_choices_tells_nothing() -> None:
    """Red and yellow circles get the same four colours in the same order."""
    red, yellow = (tifa(Statement("presence", Mention("circle", c)))[1] for c in ("red", "yellow"))
    assert (red["choices"], red["answer"], yellow["answer"]) == (yellow["choices"], "red", "yellow")


@pytest.mark.parametrize("style", ["dsg", "tifa", "gecko questions"])
def test_no_question_is_asked_twice(style: str) -> None:
    for statement in drawn():
        asked = texts(style, statement)
        assert len(set(asked)) == len(asked), statement.text


def test_a_question_with_two_right_answers_is_not_asked() -> None:
    """Of two circles nobody can say which colour "the circle" has."""
    for style in ("tifa", "gecko questions", "vq2"):
        asked = [entry.get("question", entry.get("text")) for entry in entries(style, TWO_CIRCLES)]
        assert "What color is the circle?" not in asked


def test_all_styles_ask_for_a_fact_in_the_same_words() -> None:
    said = {
        style: {str(entry.get("question", entry.get("text"))) for entry in entries(style, THREE)}
        for style in ("dsg", "tifa", "vq2", "gecko questions", "skills")
    }
    assert said["dsg"] < said["tifa"]
    assert said["dsg"] == said["skills"]
    openly = {text for text in said["tifa"] if text.startswith(OPEN)}
    assert openly < said["vq2"]
    assert openly < said["gecko questions"]


def test_three_calls_of_dsg_say_what_one_call_says() -> None:
    for statement in drawn(100):
        tuples = entries("dsg tuples", statement)
        asked, related = entries("dsg questions", statement), entries("dsg dependencies", statement)
        joined = [
            {"id": t["id"], "kind": str(t["tuple"]).partition(" (")[0], "text": q["text"], **d}
            for t, q, d in zip(tuples, asked, related, strict=True)
        ]
        assert joined == entries("dsg", statement)


def test_gecko_asks_one_question_for_each_groundable_keyword() -> None:
    for statement in drawn(100):
        seen = [word["id"] for word in entries("gecko", statement) if word["groundable"]]
        assert seen == [question["id"] for question in entries("gecko questions", statement)]


def test_the_keywords_are_the_content_words_in_order() -> None:
    assert texts("gecko", LEFT) == ["red", "circle", "left of", "blue", "square"]
    assert texts("gecko", NONE) == ["no", "green", "star"]


def test_a_circle_is_one_circle_and_not_two() -> None:
    last = entries("skills", Statement("presence", RED_CIRCLE))[-1]
    assert last["question"] == "Is there exactly one red circle?"
    assert last["depends_on"] == [2]


def test_a_second_call_is_told_what_the_first_one_answered() -> None:
    message, _ = exchange("dsg questions", TWO_CIRCLES.text, TWO_CIRCLES, Random(0))
    assert message == user_message("dsg questions", TWO_CIRCLES.text) + (
        "\ntuples: 1 entity - whole (circle); 2 attribute - color (circle, red)"
        "; 3 attribute - color (circle, blue)"
    )


def test_a_caption_knows_its_own_questions_and_no_others() -> None:
    """ "no" to a yes/no question about something else, "unknown" to an open one."""
    other = Statement("relation", RED_CIRCLE, Mention("star", "blue"), "left of")
    assert answers(tifa(LEFT), LEFT) == ["yes", "red", "yes", "yes", "blue", "yes", "left of", "yes"]
    assert answers(tifa(other), LEFT) == ["yes", "red", "yes", "no", "unknown", "no", "unknown", "no"]


@pytest.mark.parametrize("style", STYLES)
def test_outside_the_language_every_list_is_empty(style: str) -> None:
    _, answer = exchange(style, "a red dog", None, Random(0))
    assert json.loads(answer) == {STYLES[style][0]: []}


def test_a_prompt_outside_the_language_confirms_nothing() -> None:
    _, answer = exchange(ANSWERS, "a red dog", None, Random(0))
    assert set(json.loads(answer)["answers"]) == {"no", "unknown"}


def test_dsg_stays_the_scene_graph() -> None:
    assert texts("dsg", LEFT) == [question.text for question in scene_graph(LEFT)]
