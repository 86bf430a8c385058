"""GenEval's prompts and checks, against those of the released code."""

import gzip
import json

import pytest

from scoregate.cli.main import main
from service.core.errors import NoTask
from service.metrics.objects.checks import relations
from service.metrics.objects.tasks import MAX_QUOTED, OTHER_NAMES, names_of, task_of
from tests.support.paths import GOLDEN

GENEVAL = GOLDEN / "geneval"


def rows(name):
    with gzip.open(GENEVAL / name, "rt") as file:
        return [json.loads(line) for line in file]


def test_every_prompt_is_read_back_into_its_metadata():
    """All 553 of them."""
    expected = [{"exclude": [], **metadata} for metadata in rows("evaluation_metadata.jsonl.gz")]
    prompts = [metadata["prompt"] for metadata in expected]
    tasks = [task_of(prompt).model_dump(by_alias=True, exclude_none=True, mode="json") for prompt in prompts]

    assert 553 == len(expected)
    assert expected == [{**task, "prompt": prompt} for task, prompt in zip(tasks, prompts, strict=True)]


@pytest.fixture
def replay(capsys):
    """The verdicts that the command prints for a file of cases."""

    def run(path, *arguments):
        assert 0 == main(["replay", "geneval", "--cases", str(path), *arguments])
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return run


def test_all_verdicts_are_those_of_the_released_code(replay):
    """299 of them, with their reasons."""
    expected = [{key: row[key] for key in ("correct", "reason")} for row in rows("checks.jsonl.gz")]

    assert 299 == len(expected)
    assert expected == replay(GENEVAL / "checks.jsonl.gz")


def test_the_papers_rule_for_positions_accepts_more(replay):
    """It has no second threshold: whatever the released code accepts, it accepts too, and some others."""
    released = replay(GENEVAL / "checks.jsonl.gz")
    paper = replay(GENEVAL / "checks.jsonl.gz", "--position-rule", "paper")

    assert all(ours["correct"] >= theirs["correct"] for ours, theirs in zip(paper, released, strict=True))
    assert sum(row["correct"] for row in paper) > sum(row["correct"] for row in released)


@pytest.mark.parametrize(
    ("b", "released", "paper"),
    [
        ((200, 0, 300, 100), ["left of"], ["left of"]),
        ((0, 200, 100, 300), ["above"], ["above"]),
        ((0, 0, 100, 100), [], []),
        ((20, 0, 120, 100), [], []),  # the margin itself, a tenth of 200
        ((21, 0, 121, 100), [], ["left of"]),  # 1 of 21 beyond it
        ((41, 0, 141, 100), ["left of"], ["left of"]),  # 21 of 41
        ((60, 200, 160, 300), ["above"], ["left of", "above"]),
        ((-200, -200, -100, -100), ["right of", "below"], ["right of", "below"]),
    ],
)
def test_where_a_box_is_from_another(b, released, paper):
    """Of a square of 100 pixels at the origin, from *b*."""
    a = (0.0, 0.0, 100.0, 100.0)

    assert released == relations(a, b, "released")
    assert paper == relations(a, b, "paper")


CASE = rows("checks.jsonl.gz")[0]
DOG = {"class": "dog", "score": 0.95, "box": [0, 0, 9, 9], "color": "red"}
RED_DOG = {"tag": "colors", "include": [{"class": "dog", "count": 1, "color": "red"}]}


def test_only_the_surest_objects_are_asked_for_their_colour(replay, tmp_path):
    """
    One red dog is wanted, and the surest dog is blue: the red one does not help.

    Of two that are as sure, the later one is taken.  A 17th does not count.
    """
    blue = {**DOG, "score": 0.99, "color": "blue"}
    many = {"tag": "single_object", "include": [{"class": "dog", "count": 17}]}
    path = tmp_path / "cases.jsonl"
    cases = [
        {"metadata": RED_DOG, "detections": [DOG, blue]},
        {"metadata": RED_DOG, "detections": [DOG, {**DOG, "color": "blue"}]},
        {"metadata": RED_DOG, "detections": [{**DOG, "score": 0.3}]},
        {"metadata": many, "detections": [DOG] * 20},
    ]
    path.write_text("\n".join(map(json.dumps, cases)))

    assert [
        {"correct": False, "reason": "expected red dog>=1, found 0 red; and 1 blue"},
        {"correct": False, "reason": "expected red dog>=1, found 0 red; and 1 blue"},
        {"correct": False, "reason": "expected dog>=1, found 0"},
        {"correct": False, "reason": "expected dog>=17, found 16"},
    ] == replay(path)


TWO = [{"class": "dog", "count": 2}]


@pytest.mark.parametrize(
    ("tag", "include", "detections", "option"),
    [
        ("two_object", TWO, [DOG, {**DOG, "score": 0.2}], ("--threshold", "0.1")),
        ("counting", TWO, [DOG, {**DOG, "score": 0.2}], ("--counting-threshold", "0.1")),
        ("two_object", [{"class": "dog", "count": 17}], [DOG] * 17, ("--max-objects", "17")),
        (
            "position",
            [{"class": "dog", "count": 1}, {"class": "cat", "count": 1, "position": ["right of", 0]}],
            [DOG, {**DOG, "class": "cat", "box": [2, 0, 11, 9]}],
            ("--position-threshold", "0"),
        ),
    ],
)
def test_the_constants_of_the_released_code_are_options(replay, tmp_path, tag, include, detections, option):
    """Each of these makes a case correct."""
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps({"metadata": {"tag": tag, "include": include}, "detections": detections}))

    assert [False, True] == [replay(path, *more)[0]["correct"] for more in ((), option)]


def test_overlapping_boxes_can_be_one_object(replay, tmp_path):
    """From an intersection over union of `--max-overlap` on."""
    path = tmp_path / "cases.jsonl"
    metadata = {"tag": "counting", "include": [{"class": "dog", "count": 2}]}
    path.write_text(json.dumps({"metadata": metadata, "detections": [DOG, DOG]}))

    assert [True, False] == [replay(path, *more)[0]["correct"] for more in ((), ("--max-overlap", "0.5"))]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--threshold", "0.01"), "threshold: Input should be greater than or equal to 0.05"),
        (("--max-objects", "many"), "max_objects: Input should be a valid integer"),
        (("--position-rule", "mine"), "position_rule: Input should be 'released' or 'paper'"),
    ],
)
def test_an_option_outside_its_values_is_refused_as_the_metric_refuses_it(capsys, option, said):
    """In one line."""
    assert 2 == main(["replay", "geneval", "--cases", str(GENEVAL / "checks.jsonl.gz"), *option])
    assert f"scoregate: {said}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("{", "line 2: the line: "),
        ({"metadata": {"include": []}}, "line 2: metadata.tag: Field required"),
        ({"metadata": {"tag": "colors", "include": []}}, "line 2: metadata.include has no clause"),
        (
            {"metadata": {"tag": "colors", "include": [{"class": "dragon", "count": 1}]}},
            "line 2: 'dragon' is not a class of GenEval",
        ),
        (
            {
                "metadata": {
                    "tag": "position",
                    "include": [{"class": "dog", "count": 1, "position": ["above", 0]}],
                }
            },
            "line 2: metadata.include[0].position must name an earlier clause, and names 0",
        ),
        (
            {"metadata": RED_DOG, "detections": [{**DOG, "color": None}]},
            "line 2: detections: the color of a dog is missing",
        ),
        ({"detections": [{**DOG, "box": [0, 0, 9]}]}, "line 2: detections.0.box: "),
        ({"detections": [{**DOG, "score": 2}]}, "line 2: detections.0.score: "),
    ],
    ids=str,
)
def test_a_case_that_cannot_be_judged_ends_with_one_line(capsys, tmp_path, change, said):
    """Which names the line of the file and the field; status 2, and no verdicts."""
    path = tmp_path / "cases.jsonl"
    bad = change if isinstance(change, str) else json.dumps({**CASE, **change})
    path.write_text(f"{json.dumps(CASE)}\n{bad}\n")

    assert 2 == main(["replay", "geneval", "--cases", str(path)])
    printed = capsys.readouterr()

    assert "" == printed.out
    assert f"{path}: {said}" in printed.err
    assert 1 == printed.err.count("\n")


@pytest.mark.parametrize(
    ("length", "shown"),
    [(MAX_QUOTED, MAX_QUOTED * "x"), (MAX_QUOTED + 1, f"{MAX_QUOTED * 'x'}…")],
    ids=["short", "long"],
)
def test_a_prompt_of_no_template_is_an_error_with_its_beginning(length, shown):
    """And with what to send in its place."""
    with pytest.raises(NoTask) as raised:
        task_of(length * "x")

    assert str(raised.value) == (
        f'"{shown}" fits none of GenEval\'s templates with its 80 classes of objects;'
        " send the options tag and include, which list the objects"
    )


def test_a_detectors_labels_have_the_names_of_geneval():
    """Those of other data sets, too; a label that GenEval lacks stays as it is."""
    assert {"sofa": "couch", "couch": "couch", "dog": "dog", "unicorn": "unicorn"} == names_of(
        ["sofa", "couch", "dog", "unicorn"]
    )
    assert OTHER_NAMES == {name: other for other, name in names_of([*OTHER_NAMES.values()]).items()}
