"""What `score` and `batch` end with: figures of the scores on stderr, which `--quiet` leaves out."""

import json

from scoregate.runs.summary import MAX_MEDIAN_SCORES, ScoreFigures, Summary
from tests.support.pictures import png
from tests.unit.client.cli.served import ROWS, Numbered, Service, metric

METRICS = {"vqascore": metric()}
LOWER = {"artifact": metric("lower is better")}
OUT = ("-o", "out.jsonl")
BATCH = ("batch", "rows.jsonl", *OUT)


def test_batch_ends_with_the_mean_the_median_and_the_three_lowest_scores(command, tmp_path):
    """Each with the name of its picture, and the pace of the run."""
    rows = [{"image": f"{n}.png", "prompt": f"p {n}"} for n in (4, 1, 3, 2, 9)]
    (tmp_path / "few.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    for row in rows:
        (tmp_path / row["image"]).write_bytes(png())
    status, out, said = command(Numbered("clip@1", metrics=METRICS), "batch", "few.jsonl", *OUT)

    figures = "vqascore: mean 3.8000, median 3.0000; lowest 1.0000 1.png, 2.0000 2.png, 3.0000 3.png"
    assert (0, "") == (status, out)
    assert figures in said.splitlines()
    assert any(
        line.startswith("5 pictures in ") and line.endswith(" per second") for line in said.splitlines()
    )


def test_where_lower_scores_are_better_the_highest_are_named(command):
    """They are the worst pictures."""
    _, _, said = command(Numbered("clip@1", metrics=LOWER), *BATCH, "-m", "artifact")

    assert "; highest 39.0000 p.png, 38.0000 p.png, 37.0000 p.png\n" in said


def test_score_ends_with_the_same_figures_of_several_pictures(command, tmp_path):
    """On stderr, so that the table is all of stdout."""
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(png())
    _, out, said = command(Numbered("clip@1", metrics=METRICS), "score", "a.png", "b.png", "-p", "n 2")
    _, _, of_one = command(Numbered("clip@1", metrics=METRICS), "score", "a.png", "-p", "n 2")

    assert ["PICTURE", "a.png", "b.png"] == [line.split()[0] for line in out.splitlines()]
    assert "vqascore: mean 2.0000, median 2.0000; lowest 2.0000 a.png, 2.0000 b.png\n" in said
    assert "2 pictures in " in said
    assert "" == of_one


def test_quiet_prints_results_and_errors_alone(command, tmp_path):
    """No warning, no summary; a row that cannot be read is an error."""
    warned = {"warnings": ["vqa is tired"], "warning_codes": [{"code": "tired"}]}
    service = Service("clip@1", metrics=METRICS, **warned)
    (tmp_path / "bad.jsonl").write_text('{"image": "gone.png", "prompt": "a"}', "utf-8")
    silent = command(service, *BATCH, "--quiet")
    failed = command(service, "--quiet", "batch", "bad.jsonl", "-o", "bad.results.jsonl")

    assert (0, "", "") == silent
    assert ROWS == len((tmp_path / "out.jsonl").read_text("utf-8").splitlines())
    assert (1, "") == failed[:2]
    assert ["cannot read row 1, gone.png", "0 of 1 rows have all scores"] == [
        line.partition(":" if number == 0 else ";")[0] for number, line in enumerate(failed[2].splitlines())
    ]


def test_health_warns_on_stderr(command):
    """Stdout has the state and the models."""
    status, out, said = command(Service("scoregate-demo-vqa@1", metrics=METRICS), "health")

    assert 0 == status
    assert "warning" not in out
    assert said.startswith("warning: ")


def test_the_figures_of_parts_are_those_of_the_whole():
    """As of the shards of a cluster."""
    lines = [
        {"row": n, "image": f"{n}.png", "scores": {"a": n * 7 % 5}, "errors": {}, "warnings": []}
        for n in range(9)
    ]
    parts = Summary.merged([Summary.of(lines[:4]), Summary.of(lines[4:])])

    assert str(Summary.of(lines).figures["a"]) == str(parts.figures["a"])


def test_scores_without_number_have_no_median():
    """Memory is bounded; the mean and the lowest scores stay exact."""
    figures = ScoreFigures()
    figures.extend(MAX_MEDIAN_SCORES, MAX_MEDIAN_SCORES * 0.5, (0.5,), [(0.5, "a.png")])
    figures.add(0.25, "b.png")

    assert "mean 0.5000; lowest 0.2500 b.png, 0.5000 a.png" == str(figures)
