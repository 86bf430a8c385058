"""The store of results, with the lines of `score_many` and of data sets."""

import json
from dataclasses import replace

import pytest

from scoregate.data.rows import Row
from scoregate.items import ScoreParams
from scoregate.many import Resume
from scoregate.records import dumped
from scoregate.runs.cluster import QuestionSets
from scoregate.runs.plan import Plan
from scoregate.runs.results import Results

PLAN = Plan(["vqascore"], {}, {})
ROWS = [Row(number, f"{number}.png", "a cat", sha256="sha256:0") for number in (1, 2)]
ENTRY = {"id": None, "details": {}, "cache": {}, "request_id": "r", "errors": {}}


def of_items(path):
    """The store of `score_many`."""
    return Resume(path, ScoreParams(["vqascore"], None, False, "bulk"))


def of_rows(path):
    """The store of data sets."""
    return Results(PLAN, path)


def item_line(index, score):
    """A line of `score_many`."""
    return {"index": index, "key": "k", "sha256": None, **ENTRY, "scores": {"vqascore": score}}


def row_line(index, score):
    """A line of a data set."""
    return PLAN.content(ROWS[index], {"vqascore": score}, {})


def set_line(index, score):
    """A question set; the prompt has what JSON escapes."""
    return {"prompt": f'a "red" \\ cätê {index}', "style": "dsg", "scores": {"vqascore": score}}


KINDS = {"items": (of_items, item_line), "rows": (of_rows, row_line), "sets": (QuestionSets, set_line)}


@pytest.mark.parametrize(("store_of", "line"), KINDS.values(), ids=KINDS)
def test_a_later_line_takes_the_place_of_an_earlier_one(tmp_path, store_of, line):
    """At once, and for the next run; the earlier one stays in the file."""
    path = tmp_path / "results.jsonl"
    store = store_of(path)
    for index, score in ((0, 0.25), (1, 0.5), (0, 0.75)):
        new = line(index, score)
        store.append(new, store.key(new))
    again = [store]
    store.flush()
    again.append(store_of(path))

    for each in again:
        scores = [each.at(start)["scores"]["vqascore"] for start in each.starts.values()]
        assert ([0.75, 0.5], 3) == (scores, each.count)
        each.close()


@pytest.mark.parametrize(("store_of", "line"), KINDS.values(), ids=KINDS)
def test_a_line_that_was_not_written_to_its_end_is_cut_off(tmp_path, store_of, line):
    """Wherever it ends; and what comes next is written in its place."""
    path = tmp_path / "results.jsonl"
    whole, torn, new = json.dumps(line(0, 0.25)).encode() + b"\n", dumped(line(1, 0.5)), line(1, 0.75)
    for end in range(1, len(torn)):
        path.write_bytes(whole + torn[:end])
        store = store_of(path)
        store.append(new, store.key(new))
        store.close()

        assert [line(0, 0.25), new] == [*map(json.loads, path.read_bytes().splitlines())]


@pytest.mark.parametrize(("store_of", "line"), KINDS.values(), ids=KINDS)
def test_a_file_of_something_else_is_closed_unchanged(tmp_path, store_of, line):
    """A warning about an open file would be an error of this test."""
    path = tmp_path / "results.jsonl"
    path.write_text("name,score\n")
    with pytest.raises(ValueError, match="line 1"):
        store_of(path)

    assert "name,score\n" == path.read_text()


def test_results_without_a_file_are_in_memory():
    """In the order of the rows, whatever came first."""
    results = Results(PLAN)
    for row, score in zip(reversed(ROWS), (0.5, 0.25), strict=True):
        results.add(row, PLAN.content(row, {"vqascore": score}, {}))

    assert [(1, 0.25), (2, 0.5)] == [(line["row"], line["scores"]["vqascore"]) for line in results.lines()]
    assert results.earlier(ROWS[0])
    assert not results.earlier(replace(ROWS[0], sha256="sha256:1"))
