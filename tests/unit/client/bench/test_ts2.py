"""`scoregate bench ts2` on the released data, and how scores are joined with a benchmark's data."""

import pytest

from scoregate.cli.main import main
from tests.unit.client.evaluation.conftest import RELEASED

pytestmark = pytest.mark.slow

ROWS = [
    {"id": graph, "rank": node, "file_name": f"{graph}-{node}.png"}
    for graph in (0, 120)
    for node in ("0", "1a", "1b", "2")
]
SCORES = [{"file_name": row["file_name"], "m": 8 - place} for place, row in enumerate(ROWS)]


def test_the_released_scores_give_the_papers_table(bench):
    """One row for each metric, with the time that was given."""
    metrics = ("--metric", "alignscore", "--metric", "blip1_dsg", "--seconds", "blip1_dsg=1.5")
    first, second = bench("ts2", RELEASED / "t2iscorescore.csv.gz", *metrics)["metrics"]

    assert (0.739016, 0.928342, 0.95623) == pytest.approx(
        [first[name]["all"] for name in ("rank", "sep", "delta")], rel=1e-5
    )
    assert (0.775883, 0.702392, 0.625567) == pytest.approx(
        [first["rank"][part] for part in ("synth", "nat", "real")], abs=6e-7
    )
    assert 1.03668 == pytest.approx(second["delta"]["all"], rel=1e-5)
    assert (None, 1.5) == (first["seconds"], second["seconds"])
    assert (164, 2840) == (first["graphs"], first["images"])


@pytest.mark.parametrize(
    ("scores", "more", "how"),
    [
        (SCORES[::-1], (), "file_name"),
        ([{"m": row["m"]} for row in SCORES], ("--by-order",), "order"),
        (
            [{"id": str(data["id"]), "m": row["m"]} for data, row in zip(ROWS, SCORES, strict=True)],
            ("--by-order",),
            "order",
        ),
        (
            [
                {"row": 7, "image": row["file_name"], "prompt": "", "scores": {"m": row["m"]}, "errors": {}}
                for row in SCORES
            ],
            (),
            "image",
        ),
    ],
    ids=["by key", "by place", "by place, with an equal column", "of batch"],
)
def test_scores_are_joined_by_key_or_by_place(bench, written, scores, more, how):
    """The ranks of all are perfect, since every score falls; and the output says how."""
    data, file = written(ROWS, "data.csv"), written(scores, "scores.jsonl")

    found = bench("ts2", data, "--scores", file, *more)
    [row] = found["metrics"]

    assert [f"8 of 8 rows of scores.jsonl by {how}"] == found["joined"]
    assert ("m", 1.0, 8) == (row["metric"], row["sep"]["all"], row["images"])
    assert {"all", "synth", "nat"} == set(row["rank"])


@pytest.mark.parametrize(
    ("scores", "line"),
    [
        ([{"m": 1}], "1 rows for 8 of"),
        (
            [{"m": place, "rank": "3"} for place in range(8)],
            "row 1, column rank: '0' in the data, '3' in the",
        ),
    ],
)
def test_rows_that_differ_are_not_joined_by_their_order(refused, written, scores, line):
    """In their number, or in a column of both."""
    files = written(ROWS, "data.csv"), "--scores", written(scores, "scores.jsonl")

    assert line in refused("bench", "ts2", *files, "--by-order")


def test_a_time_of_a_metric_that_is_not_printed_is_refused(refused, written):
    """A misspelt name would leave the time out."""
    files = written(ROWS, "data.csv"), "--scores", written(SCORES, "s.jsonl")

    said = refused("bench", "ts2", *files, "--seconds", "mm=1")
    assert "--seconds mm: no such metric is printed; there are m" in said


def test_a_time_is_a_finite_number(written, capsys):
    """Otherwise the table could not be JSON."""
    with pytest.raises(SystemExit):
        main(["bench", "ts2", written(ROWS, "data.csv"), "--seconds", "m=nan"])
    assert "above 0" in capsys.readouterr().err


def test_printed_walks_have_plain_means():
    """Two walks: 0, 1a, 2 and 0, 1b, 2, of neighbours that are apart by 0.2 and 0.6, or 0.1 and 0.7."""
    from scoregate.evaluation.ts2 import of_printed

    nodes = {"0": [1.0], "1a": [0.8, 0.8], "1b": [0.9], "2": [0.2]}
    import numpy as np

    rank, sep, delta = of_printed("g", {name: np.array(each) for name, each in nodes.items()})

    assert (1.0, 1.0, 0.4) == pytest.approx((rank, sep, delta))
