"""GenEval's rewards of trainers: the same numbers as reward-server's own code gives (92ac29f)."""

import pytest

from service.core.errors import Invalid
from service.metrics.common.contract import Score
from service.metrics.geneval import GenEvalOptions
from service.metrics.objects.checks import coloured, relations, reward, verdict
from service.metrics.objects.detections import DetectedObject
from service.metrics.objects.tasks import TRAINER_FORMAT, Task

LEFT, RIGHT = (0.0, 0.0, 10.0, 10.0), (100.0, 0.0, 110.0, 10.0)


def clause(name, count=1, **more):
    return {"class": name, "count": count, **more}


def objects(**boxes):
    """By class, the colours of objects, whose places are LEFT for a and RIGHT for b."""
    places = {"a": LEFT, "b": RIGHT}
    return {
        name: [DetectedObject(name, 0.95, places[name], colour=colour) for colour in colours]
        for name, colours in boxes.items()
    }


# What their `evaluate_reward` gives: 200,000 random cases were compared with it once, and none differed.
CASES = {
    "as many as asked for": ([clause("a", 2)], objects(a=["red"] * 2), True, 1.0),
    "one too few": ([clause("a", 2)], objects(a=["red"]), False, 0.5),
    "none": ([clause("a", 2)], objects(), False, 0.0),
    "far too many": ([clause("a")], objects(a=["red"] * 4), False, -2.0),
    "one of two classes": ([clause("a"), clause("b")], objects(a=["red"]), False, 0.5),
    "the colour": ([clause("a", color="red")], objects(a=["red"]), True, 1.0),
    "another colour": ([clause("a", color="blue")], objects(a=["red"]), False, 0.5),
    "a colour of too many": ([clause("a", color="red")], objects(a=["red"] * 2), False, 0.0),
    "the place": (
        [clause("a"), clause("b", position=["right of", 0])],
        objects(a=["red"], b=["red"]),
        True,
        1.0,
    ),
    "another place, which gives a 1 as well": (
        [clause("a"), clause("b", position=["left of", 0])],
        objects(a=["red"], b=["red"]),
        False,
        3 / 4,
    ),
    "one too few of a colour": ([clause("a", 2, color="red")], objects(a=["red"]), False, 0.25),
    "one too few in a place": (
        [clause("a"), clause("b", 2, position=["right of", 0])],
        objects(a=["red"], b=["red"]),
        False,
        0.5,
    ),
    "a place from what has none itself": (
        [clause("a", 2), clause("b", position=["right of", 0]), clause("b", position=["right of", 1])],
        objects(a=["red"], b=["red"]),
        False,
        0.5,
    ),
    "a place from nothing": (
        [clause("a", 2), clause("b", position=["right of", 0])],
        objects(a=["red"], b=["red"]),
        False,
        0.5,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_reward_is_the_mean_of_what_was_asked_for(name):
    include, found, strict, value = CASES[name]
    given = reward(Task.model_validate({"tag": "position", "include": include}), found, "released")

    assert (strict, pytest.approx(value)) == given


@pytest.mark.parametrize(("rule", "strict"), [("released", False), ("paper", True)])
def test_a_place_is_judged_by_the_rule(rule, strict):
    """Mostly below, and a little to the right."""
    include = [clause("a"), clause("b", position=["right of", 0])]
    task = Task.model_validate({"tag": "position", "include": include})
    below = DetectedObject("b", 0.95, (30.0, 100.0, 40.0, 110.0))

    assert strict is reward(task, {**objects(a=["red"]), "b": [below]}, rule).strict


def test_the_answer_has_the_keys_and_the_order_of_reward_servers():
    """By task, -10 stands for pictures of another one."""
    shown = [
        {"correct": True, "strict": False, "reward": 0.5, "tag": "counting"},
        {"correct": True, "strict": True, "reward": 1.0, "tag": "colors"},
    ]
    answer = TRAINER_FORMAT.answer([Score(1.0, each) for each in shown])

    tasks = ["single_object", "two_object", "counting", "colors", "position", "color_attr"]
    others = {task: [-10.0, -10.0] for task in tasks}
    assert ["scores", "rewards", "strict_rewards", "group_rewards", "group_strict_rewards"] == [*answer]
    assert ([0.5, 1.0], [1.0, 1.0], [0.0, 1.0]) == tuple(answer.values())[:3]
    assert others | {"counting": [1.0, -10.0], "colors": [-10.0, 1.0]} == answer["group_rewards"]
    assert others | {"counting": [0.0, -10.0], "colors": [-10.0, 1.0]} == answer["group_strict_rewards"]
    assert tasks == [*answer["group_rewards"]]


def test_a_line_of_metadata_is_read_over_the_options_of_the_settings():
    """What the metric does not read plays no part."""
    line = {"tag": "single_object", "include": [clause("cat")], "prompt": "a photo of a cat", "id": 7}
    options = TRAINER_FORMAT.options_of(line, GenEvalOptions(position_rule="paper"))

    assert ("a photo of a cat", "paper") == (options.prompt, options.position_rule)
    assert ["cat"] == [each.name for each in options.include]


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("a cat", "must be a dict"),
        ({"tag": "counting", "prompt": "a cat"}, "has no include"),
        ({"tag": "counting", "include": [clause("cat")]}, "has no prompt"),
        ({"tag": "beauty", "include": [clause("cat")], "prompt": "a cat"}, "tag: "),
        ({"tag": "counting", "include": [clause("cat", 0)], "prompt": "a cat"}, "include/0/count: "),
    ],
)
def test_a_line_that_is_none_is_named(line, named):
    with pytest.raises(Invalid, match=named):
        TRAINER_FORMAT.options_of(line, GenEvalOptions())


@pytest.mark.parametrize(
    ("include", "found", "rule", "reason"),
    [
        (
            [clause("a", 2, color="blue")],
            objects(a=["red", "green"]),
            "released",
            "expected blue a>=2, found 0 blue; and 1 red, 1 green",
        ),
        (
            [clause("a", color="blue"), clause("b", position=["right of", 0])],
            objects(a=["red"], b=["red"]),
            "released",
            "expected blue a>=1, found 0 blue; and 1 red\nno target for b to be right of",
        ),
        (
            [clause("a"), clause("c", position=["left of", 0])],
            {**objects(a=["red"]), "c": [DetectedObject("c", 0.95, (30.0, 100.0, 40.0, 110.0))]},
            "paper",
            "expected c left of target, found right of and below target",
        ),
    ],
)
def test_each_clause_that_fails_has_a_reason(include, found, rule, reason):
    """An object whose own clause fails is no target of another."""
    judged = verdict(Task.model_validate({"tag": "position", "include": include}), found, rule)

    assert (False, reason) == judged


def test_only_objects_of_clauses_with_a_colour_need_one():
    include = [clause("a"), clause("b", color="red")]
    task = Task.model_validate({"tag": "color_attr", "include": include})

    assert ["b"] == [each.name for each in coloured(task, objects(a=["red"], b=["red"]))]


def test_an_offset_of_a_thousandth_of_a_pixel_is_one():
    """Less is none in the released rule; in the paper's, any offset beyond the margin counts."""
    origin = (0.0, 0.0, 0.0, 0.0)

    assert ["right of"] == relations((0.001, 0.0, 0.001, 0.0), origin, "released")
    assert [] == relations((0.0009, 0.0, 0.0009, 0.0), origin, "released")
    assert ["right of"] == relations((0.0009, 0.0, 0.0009, 0.0), origin, "paper")
