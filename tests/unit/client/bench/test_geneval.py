"""`scoregate bench geneval`: generators by task, kinds of failure, and agreement with people."""

import json

import pytest

from scoregate.evaluation.geneval import TASKS
from service.metrics.objects.checks import verdict
from service.metrics.objects.detections import DetectedObject
from service.metrics.objects.tasks import Task


def rows(correct, reason=""):
    """A row of the released code for each task, with people's verdict: all correct but that of `position`."""
    return [
        {
            "filename": f"{task}.png",
            "tag": task,
            "prompt": task,
            "correct": correct,
            "reason": reason,
            "metadata": json.dumps({"tag": task, "prompt": task}),
            "details": json.dumps({"bench": [[0.0, 0.0, 9.0, 9.0, 0.9]]}),
            "human": task != "position",
            "clip": place / 10,
        }
        for place, task in enumerate(TASKS)
    ]


def test_generators_are_compared_by_task(bench, written, tmp_path):
    """A folder holds GenEval's own file."""
    (tmp_path / "b").mkdir()
    written(
        rows(False, "expected bench>=1, found 0\nexpected red cup>=1, found 0 red; and 1 blue"),
        "b/results.jsonl",
    )
    found = bench("geneval", f"a={written(rows(True), 'a.jsonl')}", f"b={tmp_path / 'b'}")

    assert [("a", 1, 1, 6), ("b", 0, 0, 6)] == [
        (row["generator"], row["overall"], row["images_correct"], row["prompts"])
        for row in found["generators"]
    ]
    assert dict.fromkeys(TASKS, 1) == found["generators"][0]["mean"]
    assert [("wrong color", {"a": 0, "b": 1}), ("too few objects", {"a": 0, "b": 1})] == [
        (row["failure"], row["mean"]) for row in found["failures"]
    ]


def pictures(correct, first=0):
    """Ten prompts of each task from the number *first*, each with four pictures that are alike."""
    numbers = range(first, first + 10)
    rows = [{"tag": task, "prompt": f"{task} {number}"} for task in TASKS for number in numbers]
    return [row | {"correct": correct(int(row["prompt"].split()[1]))} for row in rows for _ in range(4)]


def test_shares_have_intervals_over_prompts(bench, written):
    """Four pictures of a prompt that are alike say as much as one."""
    wide, narrow = (
        bench("geneval", f"a={written(rows)}")["generators"][0]["interval"]
        for rows in (pictures(lambda number: number % 2), pictures(lambda number: number % 2)[::4])
    )

    assert {*TASKS, "overall", "images_correct", "prompts_correct"} == wide.keys()
    assert wide == {name: pytest.approx(ends) for name, ends in narrow.items()}
    assert all(low < 0.5 < high for low, high in wide.values())
    assert wide["counting"][0] < wide["overall"][0]


def test_generators_are_compared_on_the_prompts_of_both(bench, written):
    """The first is right in all, the second in half of the 30 that it shares."""
    files = (
        written(pictures(lambda number: True), "a.jsonl"),
        written(pictures(lambda number: number % 2, first=5), "b.jsonl"),
    )
    command = ("geneval", f"a={files[0]}", f"b={files[1]}")
    found, without = bench(*command), bench(*command, "--bootstrap", 0)
    [overall] = [each for each in found["differences"] if each["figure"] == "overall"]

    assert (30, 0) == (found["compared"], found["seed"])
    assert ("a", "b", pytest.approx(0.4)) == (overall["a"], overall["b"], overall["difference"])
    assert overall["p"] < 0.01
    assert not {"differences", "seed"} & without.keys()


def test_a_task_with_one_prompt_has_no_interval(bench, written):
    """Nor has the mean of the tasks then; few pictures are cautioned of."""
    [row] = bench("geneval", f"a={written(rows(True))}")["generators"]

    wilson = pytest.approx([6 / (6 + 3.841459), 1])
    assert {"images_correct": wilson, "prompts_correct": wilson} == row["interval"]
    assert "6 images, fewer than 30" == row["caution"]


def test_failures_are_shares_of_the_pictures_that_have_a_verdict(bench, written):
    """The same rows as those of the other figures; a right picture fails by nothing."""
    no_cup = "expected cup>=1, found 0"
    table = [
        {"tag": "counting", "prompt": "two cups", "correct": correct, "reason": reason}
        for correct, reason in ((0, no_cup), (1, ""), (1, no_cup), (None, no_cup), ("", no_cup))
    ]
    found = bench("geneval", f"a={written(table)}")

    assert (3, 2) == tuple(found["generators"][0][name] for name in ("images", "dropped"))
    assert [{"failure": "too few objects", "mean": {"a": pytest.approx(1 / 3)}}] == found["failures"]


def test_prompts_of_a_cluster_are_drawn_together(bench, refused, written):
    """Ten prompts of each task that are alike in pairs vary more than ten."""
    rows = [
        row | {"pair": int(row["prompt"].split()[1]) // 2} for row in pictures(lambda number: number // 2 % 2)
    ]
    file = written(rows)
    narrow, wide = bench("geneval", f"a={file}"), bench("geneval", f"a={file}", "--cluster", "pair")
    ends = [each["generators"][0]["interval"]["images_correct"] for each in (narrow, wide)]

    assert ("prompt", "pair", 5) == (narrow["cluster"], wide["cluster"], wide["generators"][0]["clusters"])
    assert ends[1][1] - ends[1][0] > 1.2 * (ends[0][1] - ends[0][0])
    divided = written([row | {"pair": place} for place, row in enumerate(rows)], "t.jsonl")
    assert "column pair: prompt single_object 0 has several" in refused(
        "bench", "geneval", f"a={divided}", "--cluster", "pair"
    )


def test_a_result_of_batch_is_a_generators_verdicts(bench, written):
    """With the reasons that --explain keeps."""
    lines = [
        {
            "row": place,
            "scores": {"geneval": 0.0},
            "errors": {},
            "columns": {"tag": row["tag"], "prompt": row["prompt"]},
            "details": {"geneval": {"reason": "no target for cup to be left of"}},
        }
        for place, row in enumerate(rows(False))
    ]
    found = bench("geneval", f"a={written(lines)}")

    assert 0 == found["generators"][0]["overall"]
    assert [{"failure": "no object to be placed by", "mean": {"a": 1}}] == found["failures"]


@pytest.mark.parametrize("place", ["own_options", "details"])
@pytest.mark.parametrize("name", ["lines.jsonl", "lines.parquet"])
def test_the_tag_of_a_result_of_batch_is_that_of_the_metric(bench, written, place, name):
    """Of the row's option, or of the details; Parquet has both as JSON."""
    form = json.dumps if name.endswith(".parquet") else dict
    lines = [
        {
            "row": number,
            "prompt": row["prompt"],
            "scores": {"geneval": 1.0},
            "errors": {},
            place: form({"geneval": {"tag": row["tag"]}}),
        }
        for number, row in enumerate(rows(True), 1)
    ]
    if name.endswith(".parquet"):
        lines = [{key: cell for key, cell in line.items() if cell} for line in lines]
    [found] = bench("geneval", f"a={written(lines, name)}")["generators"]

    assert (1, 6) == (found["overall"], found["prompts"])


def test_a_folder_without_verdicts_is_refused_with_the_command_that_makes_them(refused, tmp_path):
    """Its results are where the benchmark reads them."""
    said = refused("bench", "geneval", f"a={tmp_path}")

    assert f"scoregate batch {tmp_path} -o {tmp_path}/results.jsonl -m geneval --explain" in said


@pytest.mark.parametrize(
    ("include", "exclude", "boxes", "kind"),
    [
        ([{"class": "cup", "count": 1}], [{"class": "cup", "count": 2}], [0, 30], "too many objects"),
        ([{"class": "cup", "count": 3}], [], [0], "too few objects"),
        ([{"class": "cup", "count": 1, "color": "red"}], [], [0], "wrong color"),
        (
            [{"class": "cup", "count": 1}, {"class": "cup", "count": 1, "position": ["left of", 0]}],
            [],
            [0],
            "wrong position",
        ),
        (
            [{"class": "dog", "count": 1}, {"class": "cup", "count": 1, "position": ["left of", 0]}],
            [],
            [0],
            "no object to be placed by",
        ),
    ],
)
def test_every_reason_of_the_metric_has_its_kind(include, exclude, boxes, kind):
    """Of the words that the service writes."""
    from scoregate.bench.metrics.geneval import kind_of

    objects = {"cup": [DetectedObject("cup", 0.9, (at, 0, at + 10, 10), "blue") for at in boxes]}
    task = Task.model_validate({"tag": "counting", "include": include, "exclude": exclude})

    assert kind in {kind_of(line) for line in verdict(task, objects, "released").reason.splitlines()}


def test_a_threshold_is_tuned_for_each_task(bench, written):
    """GenEval agrees in five of six, CLIPScore with its own thresholds in all."""
    found = bench("geneval", f"a={written(rows(True))}", "--human", "human", "--clipscore", "clip")[
        "agreement"
    ]

    by_task = {row["task"]: row for row in found}
    assert [*TASKS, "all"] == list(by_task)
    assert (5 / 6, 0.0) == tuple(by_task["all"]["geneval"].values())
    assert (1.0, 1.0) == tuple(by_task["all"]["clipscore"].values())
    assert (None, 0.3, None) == tuple(by_task[task]["threshold"] for task in ("position", "colors", "all"))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["a={0}", "a={0}"], "are both named a: name one as NAME=PATH"),
        (["a={0}", "--clipscore", "clip"], "needs --human"),
        (["a={0}", "--human", "nobody"], "no column 'nobody'"),
    ],
)
def test_a_comparison_that_cannot_be_made_is_refused(refused, written, arguments, line):
    """With one line."""
    file = written(rows(True))

    assert line in refused("bench", "geneval", *(each.format(file) for each in arguments))
