"""Thresholds are exact: ties count, and rates are those of `score >= threshold`."""

from fractions import Fraction
from itertools import product

import httpx2 as httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoregate.calibration import (
    CalibrationSettings,
    Rate,
    accepted,
    calibrate,
    for_false_accept_rate,
    for_pass_rate,
    percentile,
    roc,
    roc_auc,
)
from scoregate.errors import InputError
from scoregate.local import Service
from tests.support.answers import problem
from tests.unit.client.cli.served import metric

SCORES = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.7]) | st.floats(-5, 5), min_size=1)
SHARES = st.integers(1, 100).map(lambda percent: Fraction(percent, 100))


@given(SCORES, SHARES)
@settings(deadline=None)
def test_a_pass_rate_is_reached_by_the_highest_score_that_can(scores, wanted):
    """At least the share passes, and at the next higher score less than it would."""
    threshold = for_pass_rate(scores, wanted)
    higher = [score for score in scores if score > threshold]

    assert Fraction(sum(score >= threshold for score in scores), len(scores)) >= wanted
    assert Fraction(len(higher), len(scores)) < wanted


@given(SCORES, SCORES, SHARES)
@settings(deadline=None)
def test_a_false_accept_rate_is_kept_by_the_lowest_score_that_can(bad, good, wanted):
    """No more bad ones pass, and at any lower score too many would."""
    threshold = for_false_accept_rate(bad, good, wanted)
    kept = [
        score for score in {*bad, *good} if Fraction(sum(other >= score for other in bad), len(bad)) <= wanted
    ]

    assert threshold == min(kept, default=None)


def test_tied_scores_pass_together():
    """Three of four stand at the threshold, so all of them pass."""
    threshold = for_pass_rate([0.9, 0.5, 0.5, 0.5], Fraction(1, 2))

    assert 0.5 == threshold
    assert Rate(4, 4) == accepted([0.5, 0.5, 0.5, 0.9], threshold)


def test_a_share_is_not_rounded():
    """0.07 of 100 are seven scores; in binary numbers they would be a little more."""
    assert 93 == for_pass_rate(range(100), Fraction("0.07"))
    assert 0.07 * 100 > 7


def test_no_threshold_accepts_less_than_the_best_score_does():
    """A bad picture on top: nothing can be accepted without it."""
    assert for_false_accept_rate([0.9, 0.1], [0.9, 0.5], Fraction(1, 100)) is None


@given(SCORES, SCORES)
@settings(deadline=None)
def test_the_auc_is_the_share_of_pairs_in_order(bad, good):
    """A tie counts half; the curve's area is the same."""
    pairs = [(better > worse) + (better == worse) / 2 for worse, better in product(bad, good)]
    false, true = roc(bad, good)
    area = sum(
        (right - left) * (low + high) / 2
        for left, right, low, high in zip(false, false[1:], true, true[1:], strict=False)
    )

    assert sum(pairs) / len(pairs) == pytest.approx(roc_auc(bad, good))
    assert area == pytest.approx(roc_auc(bad, good))


def test_an_interval_holds_the_rate_and_narrows_with_the_samples():
    """Wilson's, against figures that were worked out by hand; it never leaves 0 to 1."""
    assert (0.0, 0.2775) == pytest.approx(Rate(0, 10).interval, abs=1e-4)
    assert (0.2366, 0.7634) == pytest.approx(Rate(5, 10).interval, abs=1e-4)
    assert (0.7225, 1.0) == pytest.approx(Rate(10, 10).interval, abs=1e-4)
    assert Rate(500, 1000).interval[0] > Rate(5, 10).interval[0]


def test_a_percentile_is_a_score_that_is_there():
    """The nearest rank: half of four scores do not exceed the second."""
    assert [1, 2, 4] == [percentile([1, 2, 3, 4], percent) for percent in (1, 50, 99)]


def test_a_threshold_is_chosen_from_a_program(tmp_path):
    """Settings that do not go together are an error before a file is read."""
    file = tmp_path / "scores.csv"
    file.write_text("score,good\n0.1,0\n0.2,0\n0.8,1\n0.9,1\n", "utf-8")
    settings = CalibrationSettings(scores=file, label="good", false_accept_rate=Fraction(0))
    found = calibrate(settings, Service())

    assert ([], 0.8, 1.0) == (found.samples.notes, found.threshold, found.auc)
    assert {"false_accept_rate": 0.0} == found.as_json()["wanted"]
    with pytest.raises(InputError, match="`threshold` is that of the model whose scores `like` names"):
        CalibrationSettings(scores=tmp_path / "none.csv", threshold=0.5)


def test_a_lower_score_is_better_if_the_service_says_so(tmp_path, answered):
    """Of a client, as of the service that the command names; without an answer higher ones are."""
    file = tmp_path / "scores.csv"
    file.write_text("score\n1\n2\n3\n4\n", "utf-8")
    settings = CalibrationSettings(scores=file, pass_rate=Fraction(3, 4))
    models = {"models": [], "metrics": {"score": metric("lower is better")}}
    lower = calibrate(settings, Service.of(answered(lambda request: httpx.Response(200, json=models))))
    away = calibrate(settings, Service.of(answered(lambda request: problem(403, "forbidden"))))

    assert (3.0, None) == (lower.threshold, lower.samples.fault)
    assert (2.0, "forbidden") == (away.threshold, away.samples.fault.code)


def test_thresholds_of_another_model_are_chosen_from_a_program(tmp_path):
    """Each keeps the pass rate of the other model's."""
    for name, scores in (("new", (1, 2, 3, 4)), ("old", (10, 20, 30, 40))):
        (tmp_path / f"{name}.csv").write_text("\n".join(["score", *map(str, scores)]), "utf-8")
    settings = CalibrationSettings(scores=tmp_path / "new.csv", like=tmp_path / "old.csv", threshold=30)
    found = calibrate(settings, Service())

    assert (True, [(30, 3)]) == (
        found.complete,
        [(each["old"], each["new"]) for each in found.as_json()["thresholds"]],
    )
