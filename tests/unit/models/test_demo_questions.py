"""What the demo VQA model is asked while it learns, and the pictures that it is asked about."""

from math import hypot
from random import Random

import pytest

from demo.training.vqa_questions import (
    FORMS,
    ONE_WORD,
    REPORTED,
    TRUE_FOR,
    UNSURE,
    YES_NO,
    TrainingQuestion,
    sample_question,
)
from demo.training.world import GAPS, Scene, Thing, sample_scene
from models.core.contract import CHOICE_QUESTION, QUESTION

RED, BLUE = (255, 0, 0), (0, 0, 255)
RED_CIRCLE = Thing("circle", "red", 0.2, 0.5, 0.1, RED)
BLUE_CIRCLE = Thing("circle", "blue", 0.8, 0.5, 0.1, BLUE)
CIRCLES = Scene(1, 1, (128, 128, 128), (RED_CIRCLE, BLUE_CIRCLE))


def asked_about(scene: Scene, count: int = 3000) -> list[TrainingQuestion]:
    random = Random("questions")
    return [asked for _ in range(count) if (asked := sample_question(scene, random)) is not None]


@pytest.fixture(scope="module")
def circles() -> list[TrainingQuestion]:
    return asked_about(CIRCLES)


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (QUESTION, {"Yes", "No"}),
        (YES_NO, {"Yes", "No"}),
        (TRUE_FOR, {"Yes", "No"}),
        (UNSURE, {"Yes", "No", "Unsure"}),
    ],
)
def test_a_yes_or_no_question_is_answered_by_yes_or_no(
    circles: list[TrainingQuestion], form: str, words: set[str]
) -> None:
    ends = form.rpartition("{}")[2]
    assert {asked.answer for asked in circles if asked.text.endswith(ends)} >= words - {"Unsure"}
    assert {asked.answer for asked in circles if asked.text.endswith(ends)} <= words


def test_both_colours_answer_what_colour_the_circle_has(circles: list[TrainingQuestion]) -> None:
    """Each in about half of the cases, so that the chances come out right."""
    text = CHOICE_QUESTION.format("What color is the circle?")
    said = [asked.answer for asked in circles if asked.text == text]
    assert set(said) == {"red", "blue"}
    assert 0.3 < said.count("red") / len(said) < 0.7


def test_a_question_without_an_answer_is_not_asked(circles: list[TrainingQuestion]) -> None:
    assert not any(asked.text == CHOICE_QUESTION.format("What color is the star?") for asked in circles)


def test_one_word_is_in_lower_case(circles: list[TrainingQuestion]) -> None:
    ends = ONE_WORD.removeprefix("{}")
    said = {asked.answer for asked in circles if asked.text.endswith(ends)}
    assert {"yes", "no", "red", "two"} <= said
    assert said == {word.lower() for word in said}


def test_a_middling_size_leaves_one_unsure() -> None:
    middling = Scene(1, 1, (128, 128, 128), (Thing("ring", "red", 0.5, 0.5, 0.11, RED),))
    text = UNSURE.format("Is the red ring small?")
    assert {asked.answer for asked in asked_about(middling) if asked.text == text} == {"Unsure"}


def test_half_of_the_practice_is_vqascores() -> None:
    random = Random("share")
    drawn = [sample_question(sample_scene(random), random) for _ in range(2000)]
    made = [asked for asked in drawn if asked is not None]
    whole = sum(asked.text.startswith("Does this figure show") for asked in made)
    assert whole / len(made) > 0.5
    assert {asked.reported for asked in made} == set(REPORTED)
    assert sum(FORMS.values()) == 100


def test_things_come_as_close_as_they_are_told_to() -> None:
    random = Random("close")
    scenes = [scene for _ in range(200) if len((scene := sample_scene(random, gap=0.15)).things) > 1]
    nearest = [min(gaps(scene)) for scene in scenes]
    assert max(nearest) < 0.151
    assert all(gap > 0.99 * GAPS[0] for scene in scenes for gap in gaps(scene))


def gaps(scene: Scene) -> list[float]:
    """Between the rims of each two things, in radii of the smaller."""
    pairs = [(a, b) for n, a in enumerate(scene.things) for b in scene.things[:n]]
    return [(hypot(a.x - b.x, a.y - b.y) - a.radius - b.radius) / min(a.radius, b.radius) for a, b in pairs]


def test_no_thing_leaves_the_picture() -> None:
    random = Random("inside")
    for _ in range(300):
        scene = sample_scene(random)
        assert all(t.radius <= t.x <= scene.width - t.radius for t in scene.things)
        assert all(t.radius <= t.y <= scene.height - t.radius for t in scene.things)
