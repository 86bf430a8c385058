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


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([{"label": "0_c0", "score": 1}], "'0_c0' is not of the form ITEM_c0_i1"),
        (labelled(ALL_RIGHT, ALL_RIGHT, ALL_RIGHT, ALL_RIGHT), "the benchmark has no item 3"),
        (labelled(ALL_RIGHT) * 2, "has two scores of caption 0"),
        (labelled(ALL_RIGHT)[:3], "no item has all four scores"),
    ],
)
def test_scores_of_other_items_are_refused(refused, written, rows, line):
    """With one line."""
    data, scores = written(EXAMPLES, "examples.jsonl"), written(rows, "scores.jsonl")

    assert line in refused("bench", "winoground", data, "--scores", scores)
