"""`scoregate bench winoground` and `eqben`: right choices of captions and pictures, by tag."""

import json

import pytest

EXAMPLES = [
    {"id": 0, "collapsed_tag": "Object", "num_main_preds": 1},
    {"id": 1, "collapsed_tag": "Object", "num_main_preds": 2},
    {"id": 2, "collapsed_tag": "Both", "num_main_preds": 2},
]
ALL_RIGHT, TEXT_ONLY, EQUAL = (4, 1, 2, 3), (5, 6, 1, 9), (1, 1, 1, 1)


def labelled(*items):
    """Rows as in the released scores: caption 0 with picture 0, then with picture 1, then caption 1."""
    places = [(caption, picture) for caption in (0, 1) for picture in (0, 1)]
    return [
        {"label": f"{item}_c{caption}_i{picture}", "score": score}
        for item, scores in enumerate(items)
        for (caption, picture), score in zip(places, scores, strict=True)
    ]


def by_tag(found, *names):
    return {row["tag"]: tuple(row[name] for name in names) for row in found["metrics"][1:]}


def test_winoground_is_scored_by_its_own_and_by_later_tags(bench, written, tmp_path):
    """Equal scores are wrong, also where all scores of a tag are equal."""
    tags = tmp_path / "tags.json"
    tags.write_text(json.dumps({"0": ["NonCompositional"], "1": []}), "utf-8")
    scores = written(labelled(ALL_RIGHT, TEXT_ONLY, EQUAL), "clip.jsonl")

    found = bench("winoground", written(EXAMPLES), "--tags", tags, "--scores", scores)

    assert {"clip", "chance"} == {row["metric"] for row in found["metrics"]}
    assert {
        "all": (2 / 3, 1 / 3, 1 / 3, 3),
        "Object": (1, 0.5, 0.5, 2),
        "Both": (0, 0, 0, 1),
        "1 Main Pred": (1, 1, 1, 1),
        "2 Main Preds": (0.5, 0, 0, 2),
        "NonCompositional": (1, 1, 1, 1),
        "No Tag": (1, 0, 0, 1),
    } == by_tag(found, "text", "image", "group", "items")


def test_eqben_is_scored_by_the_folders_of_its_pictures(bench, written, tmp_path):
    """The three parts of Kubric are also one; an item that lacks a score is counted."""
    data = tmp_path / "all_select.json"
    sources = ["eqbenag", "eqbenkubric_cnt", "eqbenkubric_loc"]
    data.write_text(json.dumps([{"image0": f"{source}/a.png"} for source in sources]), "utf-8")
    rows = [
        {"item": row["label"][0], "caption": row["label"][3], "picture": row["label"][6], "m": row["score"]}
        for row in labelled(ALL_RIGHT, TEXT_ONLY, ALL_RIGHT)
    ]
    found = bench("eqben", data, "--scores", written(rows[:-1]))

    assert {"all": (0.5, 2), "eqbenag": (1, 1), "eqbenkubric_cnt": (0, 1), "eqbenkubric": (0, 1)} == by_tag(
        found, "group", "items"
    )
    assert 1 == found["metrics"][1]["incomplete"]


def test_a_share_has_its_interval_and_says_that_it_is_of_few_items(bench, written):
    """A tag with one item has none, and `--bootstrap 0` switches them off."""
    files = (written(EXAMPLES), "--scores", written(labelled(ALL_RIGHT, TEXT_ONLY, EQUAL), "clip.jsonl"))
    found, without = bench("winoground", *files), bench("winoground", *files, "--bootstrap", 0)
    intervals = {row["tag"]: row["interval"] for row in found["metrics"] if "interval" in row}

    assert {"all", "Object", "2 Main Preds"} == intervals.keys()
    assert {"text": [0, 1], "image": [0, 1], "group": [0, 1]} == intervals["all"]
    wilson = pytest.approx([2 / (2 + 3.841459), 1])
    assert wilson == intervals["Object"]["text"]
    assert 0 == found["seed"]
    assert not any("interval" in row for row in without["metrics"])
    assert {"3 items, fewer than 30", "2 items, fewer than 30", "1 item, fewer than 30"} == {
        row["caution"] for row in without["metrics"][1:]
    }


def test_metrics_are_compared_on_the_items_that_all_of_them_have(bench, written):
    """40 items, of which the second metric lacks the last one, where the first is wrong."""
    better = labelled(*[ALL_RIGHT] * 39, EQUAL)
    worse = labelled(*[ALL_RIGHT, TEXT_ONLY] * 19, TEXT_ONLY)
    files = written(better, "better.jsonl"), written(worse, "worse.jsonl")
    examples = written([{"id": number} for number in range(40)])
    found = bench("winoground", examples, *(part for file in files for part in ("--scores", file)))

    assert (39, "caution" in found) == (found["compared"], False)
    apart = {each["figure"]: each for each in found["differences"]}
    assert {"text": 0, "image": 20 / 39, "group": 20 / 39} == {
        name: pytest.approx(each["difference"]) for name, each in apart.items()
    }
    assert {("better", "worse")} == {(each["a"], each["b"]) for each in apart.values()}
    assert (1, True) == (apart["text"]["p"], apart["image"]["p"] < 0.01)


def test_items_of_a_cluster_are_drawn_together(bench, written):
    """By a column of the benchmark."""
    items = [each for pair in range(10) for each in [[ALL_RIGHT, EQUAL][pair % 2]] * 4]
    examples = written([{"id": number, "video": number // 4} for number in range(40)])
    command = ("winoground", examples, "--scores", written(labelled(*items), "clip.jsonl"))
    narrow, wide = bench(*command), bench(*command, "--cluster", "video")
    ends = [each["metrics"][1]["interval"]["text"] for each in (narrow, wide)]

    assert ("item", "video", 10) == (narrow["cluster"], wide["cluster"], wide["metrics"][1]["clusters"])
    assert ends[1][1] - ends[1][0] > 1.5 * (ends[0][1] - ends[0][0])


def test_metrics_that_share_no_item_are_not_compared(bench, written):
    """Each still has its shares."""
    halves = labelled(ALL_RIGHT, TEXT_ONLY)
    files = written(halves[:4], "first.jsonl"), written(halves[4:], "second.jsonl")
    found = bench("winoground", written(EXAMPLES), "--scores", files[0], "--scores", files[1])

    assert (0, False) == (found["compared"], "differences" in found)
    assert [1, 1] == [row["items"] for row in found["metrics"][1:] if row["tag"] == "all"]


def test_two_files_have_no_metric_of_the_same_name(refused, written):
    """Their rows could not be told apart."""
    data, scores = written(EXAMPLES), written(labelled(ALL_RIGHT), "clip.jsonl")

    assert "another file has a metric clip, too" in refused(
        "bench", "winoground", data, "--scores", scores, "--scores", scores
    )


def test_a_metric_that_one_of_two_files_has_is_compared_alone(bench, written):
    """The other file has other columns, which are not read."""
    files = [
        written([{"label": row["label"], name: row["score"]} for row in labelled(ALL_RIGHT)], f"{name}.jsonl")
        for name in ("clip", "blip")
    ]

    found = bench(
        "winoground", written(EXAMPLES), "--scores", files[0], "--scores", files[1], "--metric", "clip"
    )

    assert {"chance", "clip"} == {row["metric"] for row in found["metrics"]}


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([{"label": "0_c0", "score": 1}], "'0_c0' is not of the form ITEM_c0_i1"),
        (labelled(ALL_RIGHT)[:3], "no item has all four scores"),
    ],
)
def test_scores_without_a_whole_item_are_refused(refused, written, rows, line):
    """With one line."""
    data, scores = written(EXAMPLES, "examples.jsonl"), written(rows, "scores.jsonl")

    assert line in refused("bench", "winoground", data, "--scores", scores)
