"""GenEval's summary."""

import json

import numpy as np
import pytest

from scoregate.errors import ColumnError
from scoregate.evaluation.geneval import TASKS, by_prompt, geneval, sample_of

ROWS = [(task, f"{task} {number}", number < 2) for task in TASKS for number in range(4)]
ROWS += [("counting", "counting 3", True), ("position", "position 0", False)]


def columns():
    """Tag, prompt and verdict."""
    return [list(column) for column in zip(*ROWS, strict=True)]


def test_overall_is_the_mean_of_the_six_tasks():
    """However many pictures each has; a prompt is correct with one correct picture."""
    found = geneval(*columns())

    assert {"counting": 0.6, "position": 0.4} | dict.fromkeys(set(TASKS) - {"counting", "position"}, 0.5) == (
        found.tasks
    )
    assert 0.5 == found.overall
    assert (13 / 24, 26, 24) == (found.prompts_correct, found.images, found.prompts)
    assert found.kappa is None


def test_without_one_of_the_six_there_is_no_overall():
    """The mean of five would be another figure."""
    found = geneval(["counting", "colors"], ["a", "b"], [1, 0])

    assert found.overall is None
    assert found.tasks["position"] is None
    assert 1 == found.tasks["counting"]


def test_kappa_is_agreement_beyond_chance():
    """20 of 25 agree where 0.52 would by chance; and none where one side never differs."""
    a = [1] * 15 + [0] * 10
    b = [1] * 12 + [0] * 3 + [1] * 2 + [0] * 8
    chance = 15 / 25 * 14 / 25 + 10 / 25 * 11 / 25

    assert (20 / 25 - chance) / (1 - chance) == pytest.approx(geneval(["colors"] * 25, a, a, b).kappa)
    assert geneval(["colors"] * 2, "ab", [1, 1], [1, 1]).kappa is None


@pytest.mark.parametrize(
    ("tag", "correct", "argument"),
    [("colours", 1, "tag"), ("colors", 2, "correct"), ("colors", None, "correct")],
)
def test_a_task_or_a_verdict_that_geneval_does_not_have_is_refused(tag, correct, argument):
    """By name."""
    with pytest.raises(ColumnError) as caught:
        geneval([tag], ["a"], [correct])
    assert argument == caught.value.argument


def test_the_sample_of_prompts_has_the_figures_of_the_summary():
    """With each prompt once; drawn twice, a prompt counts twice."""
    tag, prompt, correct = columns()
    summary, sample = geneval(tag, prompt, correct), sample_of(by_prompt(tag, prompt, correct))
    names = ("overall", "images_correct", "prompts_correct")
    expected = summary.tasks | {name: getattr(summary, name) for name in names}

    assert {name: pytest.approx(value) for name, value in expected.items()} == sample.whole
    assert expected == pytest.approx(sample.figures(np.full(sample.units, 2)))


@pytest.mark.parametrize("form", [json.dumps, dict])
def test_tag_and_prompt_may_stand_in_metadata(written, evaluate, form):
    """As an object, or as its JSON, which the released code writes."""
    rows = [
        {
            "filename": f"{number}.png",
            "correct": correct,
            "metadata": form({"tag": tag, "prompt": prompt}),
            "human": not correct if number == 0 else correct,
        }
        for number, (tag, prompt, correct) in enumerate(ROWS)
    ]
    found = evaluate("geneval", "--results", written(rows, "results.jsonl.gz"))

    assert 0.5 == found["overall"]
    assert 0.9 < found["kappa"] < 1
    assert set(TASKS) == set(found["kappa_by_task"]) == set(found["tasks"])


def test_a_result_of_batch_is_read_as_it_is(written, evaluate):
    """The metric's scores are the verdicts, and the metadata is a column of the data set."""
    rows = [
        {
            "row": number,
            "prompt": prompt,
            "scores": {"geneval": float(correct)},
            "errors": {},
            "columns": {"metadata": json.dumps({"tag": tag, "prompt": prompt})},
        }
        for number, (tag, prompt, correct) in enumerate(ROWS)
    ]
    found = evaluate("geneval", "--results", written(rows), "--correct", "geneval")

    assert (0.5, 24) == (found["overall"], found["prompts"])


def test_a_picture_that_is_there_twice_is_refused(written, refused):
    """It would count twice."""
    row = {"filename": "a.png", "tag": "colors", "prompt": "x", "correct": True}

    assert "column filename: a.png has 2 rows" in refused(
        "evaluate", "geneval", "--results", written([row, row])
    )
