"""`scoregate calibrate`: what it reads, and what it says."""

import json

import pytest

from scoregate.cli.main import main

SCORES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
LABELS = [0, 0, 0, 1, 0, 1, 1, 1, 1, 1]


@pytest.fixture
def calibrate(capsys):
    """The command's exit code, and its JSON."""

    def calibrate(*arguments):
        code = main(["calibrate", *arguments, "--json"])
        return code, json.loads(capsys.readouterr().out)

    return calibrate


@pytest.mark.parametrize("name", ["scores.jsonl", "scores.csv", "scores.parquet"])
def test_the_threshold_passes_the_share_that_is_wanted(written, calibrate, name):
    """From a file of any kind; the count is there with its interval."""
    code, found = calibrate(
        written([{"mine": score} for score in SCORES], name), "-m", "mine", "--pass-rate", "0.7"
    )
    rate = found["rates"]["pass_rate"]

    assert 0 == code
    assert 0.4 == found["threshold"]
    assert (7, 10) == (rate["count"], rate["of"])
    assert rate["interval_95"][0] < 0.7 < rate["interval_95"][1]
    assert 0.5 == found["percentiles"]["50"]


@pytest.mark.parametrize("name", ["scores.jsonl", "scores.csv", "scores.parquet"])
@pytest.mark.parametrize("labels", [LABELS, [bool(label) for label in LABELS]])
def test_labels_give_a_threshold_for_a_false_accept_rate(written, calibrate, name, labels):
    """The lowest that keeps it, with the true-accept rate there and the area under the curve."""
    rows = [{"score": score, "good": label} for score, label in zip(SCORES, labels, strict=True)]
    code, found = calibrate(written(rows, name), "--label", "good", "--false-accept-rate", "0.25")

    assert 0 == code
    assert 0.4 == found["threshold"]
    assert 0.25 == found["rates"]["false_accept_rate"]["value"]
    assert 1 == found["rates"]["true_accept_rate"]["value"]
    assert 23 / 24 == pytest.approx(found["roc_auc"])
    assert {"good": 6, "bad": 4} == found["labels"]


def test_the_default_false_accept_rate_is_one_percent(written, calibrate):
    """With four bad ones that is none of them."""
    rows = [{"score": score, "good": label} for score, label in zip(SCORES, LABELS, strict=True)]
    _, found = calibrate(written(rows), "--label", "good")

    assert 0.6 == found["threshold"]
    assert 0 == found["rates"]["false_accept_rate"]["count"]


def test_without_a_threshold_the_status_is_1(written, calibrate):
    """A bad picture has the highest score."""
    code, found = calibrate(written([{"score": 1, "good": 0}, {"score": 0.5, "good": 1}]), "--label", "good")

    assert 1 == code
    assert found["threshold"] is None
    assert {} == found["rates"]


def test_results_of_batch_are_read_as_they_are(written, calibrate):
    """Scores by metric, and labels among the data set's own columns."""
    rows = [
        {"row": 1, "scores": {"vqascore": 0.9}, "errors": {}, "columns": {"good": "1"}},
        {
            "row": 2,
            "scores": {},
            "errors": {"vqascore": {"code": "image_undecodable"}},
            "columns": {"good": 0},
        },
        {"row": 3, "scores": {"vqascore": 0.2}, "errors": {}, "columns": {"good": "false"}},
    ]
    _, found = calibrate(written(rows), "--label", "good")

    assert "vqascore" == found["metric"]
    assert 0.9 == found["threshold"]
    assert {"no score": [2]} == found["left_out"]


def test_what_is_no_score_is_counted_and_named(written, capsys):
    """Missing, null, NaN and infinite ones, and lines that cannot be read."""
    rows = [
        {"score": 0.1},
        {},
        {"score": None},
        {"score": float("nan")},
        {"score": float("inf")},
        {"score": 0.2},
    ]
    path = written(rows)
    with open(path, "a", encoding="utf-8") as file:
        file.write("{half\n")

    assert 0 == main(["calibrate", path, "-m", "score"])
    said = capsys.readouterr().out
    assert "2 scores" in said
    assert "2 of 7 rows left out, no score: rows 2, 3" in said
    assert "2 of 7 rows left out, not a finite number: rows 4, 5" in said
    assert "1 of 7 rows left out, cannot be read: row 7" in said


def test_text_says_the_threshold_in_full(written, capsys):
    """Rounded, it could fail the picture that it was taken from."""
    third = 1 / 3
    assert 0 == main(["calibrate", written([{"score": third}, {"score": 1.0}]), "--pass-rate", "1"])

    assert f"threshold {third!r}:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rows", "arguments", "said"),
    [
        ([{"score": 0.5}] * 3, (), "all 3 scores are 0.5"),
        ([{"score": 0.5}], (), "there is one score"),
        ([{"score": s, "good": 1} for s in SCORES], ("--label", "good"), "all 10 labels are 1"),
        (
            [{"score": s} for s in SCORES],
            ("--label", "good"),
            "no column 'good'; there are score: --label NAME",
        ),
        (
            [{"score": 0.5, "good": "maybe"}],
            ("--label", "good"),
            "row 1, column good: 'maybe' is not a label",
        ),
        ([{"score": "high"}], (), "row 1, column score: 'high' is not a number"),
        ([{"score": True}], (), "row 1, column score: True is not a number"),
        ([{"score": "1_0"}], (), "row 1, column score: '1_0' is not a number"),
        ([{"a": 1, "b": 2}], (), "say which scores are meant with --metric; there are a, b"),
        ([{"scores": {"x": 1, "y": 2}}], (), "there are x, y"),
        ([{"score": 1}], ("-m", "other"), "no column 'other'; there are score: --metric score"),
        ([{"score": 1}], ("--false-accept-rate", "0.1"), "needs labels"),
        ([{"score": 1}], ("--pass-rate", "0"), "passes nothing"),
        ([{"score": 1}], ("--plot", "x.txt"), "must end in .png, .svg, .pdf"),
    ],
)
def test_what_says_nothing_is_refused_with_one_line(written, refused, rows, arguments, said):
    """The status is 2, and nothing is printed that looks like a result."""
    assert said in refused("calibrate", written(rows), *arguments)


@pytest.mark.parametrize(("name", "said"), [("none.csv", "No such file"), ("scores.xls", "must end in")])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, refused, name, said):
    """It is missing, or of a kind that is not known."""
    (tmp_path / "scores.xls").touch()

    assert said in refused("calibrate", str(tmp_path / name))


@pytest.mark.parametrize("text", ["1.1", "-0.1", "many", "1/0"])
def test_a_share_is_from_0_to_1(capsys, text):
    """Anything else is wrong usage."""
    with pytest.raises(SystemExit, match="2"):
        main(["calibrate", "x.csv", f"--pass-rate={text}"])

    assert "a share is a number from 0 to 1" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("label", [(), ("--label", "good")])
@pytest.mark.parametrize(("kind", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_plot_is_written(written, tmp_path, label, kind, begins):
    """With labels and without, in the format that the name says."""
    rows = [{"score": score, "good": label} for score, label in zip(SCORES, LABELS, strict=True)]
    path = tmp_path / f"plot.{kind}"

    assert 0 == main(["calibrate", written(rows), *label, "--plot", str(path)])
    assert path.read_bytes().startswith(begins)


def test_scores_too_close_to_draw_are_refused_in_one_line(written, tmp_path, capsys):
    """The next number above 1 has no room for bars between."""
    path = written([{"score": 1.0}, {"score": 1.0000000000000002}])

    assert 2 == main(["calibrate", path, "--plot", str(tmp_path / "plot.png")])
    assert "too close together" in capsys.readouterr().err


RISING = [float(number) for number in range(100)]


@pytest.fixture
def like(written, calibrate):
    """The thresholds of new scores that keep the pass rates of old ones."""

    def like(old, new, *arguments):
        old, new = (
            written([{"score": score} for score in scores], f"{name}.csv")
            for name, scores in (("old", old), ("new", new))
        )
        code, found = calibrate(new, "--like", old, *arguments)
        return code, found["thresholds"]

    return like


def test_a_model_that_scores_higher_gets_a_higher_threshold(like):
    """Twice the scores and one more, in another order: the same 40 of 100 pass."""
    code, [found] = like(RISING, [2 * score + 1 for score in RISING[::-1]], "--threshold", "60")

    assert (0, 60.0, 121.0, "") == (code, found["old"], found["new"], found["caution"])
    assert [0.4, 0.4] == [found[of]["value"] for of in ("old_rate", "new_rate")]


def test_where_lower_is_better_the_low_scores_pass(like):
    """30 of 100 have at most 29."""
    _, [found] = like(RISING, [score + 5 for score in RISING], "--threshold", "29", "--lower-is-better")

    assert (29.0, 34.0, 0.3) == (found["old"], found["new"], found["new_rate"]["value"])


def test_scores_that_are_equal_pass_together_and_that_is_said(like):
    """Half should pass, and 60 of 100 new scores are the same: the nearest rate is 0.6."""
    _, [found] = like(RISING, [0.0] * 40 + [1.0] * 60, "--threshold", "50")

    assert (1.0, 0.6) == (found["new"], found["new_rate"]["value"])
    assert "pass together" in found["caution"]


@pytest.mark.parametrize(("threshold", "who"), [("-1", "all"), ("100", "none")])
def test_a_threshold_outside_the_scores_has_none_in_its_place(like, threshold, who):
    """Status 1: the scores show no threshold of the other model, so no number is given."""
    code, [found] = like(RISING, RISING, "--threshold=" + threshold)

    assert (1, None, None) == (code, found["new"], found["new_rate"])
    assert found["caution"].startswith(who)


@pytest.mark.parametrize(("threshold", "few"), [(95, True), (90, False), (10, False), (5, True)])
def test_few_scores_beyond_the_threshold_are_said(like, threshold, few):
    """On either side: 5 of 100 pass, or 95 do."""
    _, [found] = like(RISING, RISING, f"--threshold={threshold}")

    assert few is ("fewer than 10 scores" in found["caution"])


def test_without_a_threshold_the_percentiles_of_the_old_scores_are_taken(like):
    """Each has its counterpart, but the best and the worst where all or none pass."""
    _, found = like(RISING, [score / 2 for score in RISING])

    assert [4.0, 9.0, 24.0, 49.0] == [each["old"] for each in found][1:5]
    assert all(each["new"] == each["old"] / 2 for each in found if each["new"] is not None)


def test_scores_of_other_pictures_are_refused(written):
    """A pass rate is that of the same pictures."""
    old, new = (written([{"score": 0.1 * n} for n in range(size)], f"{size}.csv") for size in (3, 4))

    assert 2 == main(["calibrate", new, "--like", old])
    assert 2 == main(["calibrate", new, "--threshold", "0.5"])


def test_a_warning_about_the_scores_comes_before_the_error_of_the_threshold(written, capsys):
    """Nothing listens at the address, so the direction of the metric is not known."""
    equal = written([{"mine": 0.5}, {"mine": 0.5}])
    code = main(["calibrate", equal, "-m", "mine", "--base-url", "http://127.0.0.1:1"])
    [warning, error] = capsys.readouterr().err.splitlines()

    assert 2 == code
    assert warning.startswith("warning: higher scores are taken as the better ones")
    assert "a threshold needs scores that differ" in error
