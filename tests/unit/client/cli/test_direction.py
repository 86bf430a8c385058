"""Metrics whose lower scores are the better ones: thresholds, pages and what is passed on in files."""

import json

import httpx2 as httpx
import pytest

from tests.unit.client.cli.served import ROWS, Numbered, Service, lines, metric

METRICS = {"distance": metric("lower is better"), "vqascore": metric()}
SCORES = [n / 10 for n in range(10)]  # of good pictures the lower half


@pytest.fixture
def service():
    """A service with a metric of each direction."""
    return Service("clip@1", metrics=METRICS)


@pytest.fixture
def scores(command, tmp_path):
    """A table of scores that says nothing of directions."""
    rows = [{"distance": score, "vqascore": 0.9 - score, "good": score < 0.45} for score in SCORES]
    (tmp_path / "scores.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return "scores.jsonl"


def calibrated(command, service, *arguments):
    """What `calibrate` prints as JSON."""
    status, out, said = command(service, "calibrate", *arguments, "--json")
    assert (0, "") == (status, said)
    return json.loads(out)


def test_low_scores_pass_where_the_service_says_so(command, service, scores):
    """The rates count scores that are at most the threshold."""
    found = calibrated(command, service, scores, "-m", "distance", "--pass-rate", "0.3")

    assert ("lower is better", 0.2) == (found["direction"], found["threshold"])
    assert (3, 10) == (found["rates"]["pass_rate"]["count"], found["rates"]["pass_rate"]["of"])
    higher = calibrated(command, service, scores, "-m", "vqascore", "--pass-rate", "0.3")
    assert ("higher is better", 0.7) == (higher["direction"], higher["threshold"])


def test_labels_are_judged_in_the_same_direction(command, service, scores):
    """All good pictures pass and no bad one; the area is 1 and not 0."""
    found = calibrated(command, service, scores, "-m", "distance", "--label", "good")

    assert (0.4, 1.0) == (found["threshold"], found["roc_auc"])
    assert 5 == found["rates"]["true_accept_rate"]["count"]
    assert 0 == found["rates"]["false_accept_rate"]["count"]
    _, out, _ = command(service, "calibrate", scores, "-m", "distance", "--label", "good")
    assert "a picture passes where its score is at most this" in out


def test_a_result_of_batch_says_it_itself(command, service, tmp_path, monkeypatch):
    """Without any service, from each format of results."""
    for out in ("out.jsonl", "out.parquet", "out.csv"):
        command(service, "batch", "rows.jsonl", "-o", out, "-m", "distance")
    held = lines(tmp_path / "out.jsonl")
    assert all(["distance"] == line["lower_is_better"] for line in held)
    for number, line in enumerate(held):
        line["scores"]["distance"] = number / ROWS
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(line) + "\n" for line in held))
    monkeypatch.delenv("SCOREGATE_BASE_URL")
    found = calibrated(command, None, "out.jsonl", "--pass-rate", "0.5")

    assert ("lower is better", 19 / ROWS) == (found["direction"], found["threshold"])
    for out in ("out.parquet", "out.csv"):
        _, _, said = command(None, "calibrate", out)
        assert "all 40 scores are 0.5" in said


def test_it_can_be_said_where_nobody_tells(command, scores, monkeypatch):
    """No service is asked that was not named."""
    monkeypatch.delenv("SCOREGATE_BASE_URL")
    arguments = (scores, "-m", "distance", "--pass-rate", "0.3")

    assert "higher is better" == calibrated(command, None, *arguments)["direction"]
    assert 0.2 == calibrated(command, None, *arguments, "--lower-is-better")["threshold"]


def test_a_named_service_that_is_away_is_told(command, scores):
    """The threshold is there, and what it takes for granted."""

    def gone(request):
        raise httpx.ConnectError("refused", request=request)

    status, out, said = command(gone, "calibrate", scores, "-m", "vqascore")

    assert 0 == status
    assert "at least this" in out
    assert "higher scores are taken as the better ones" in said


def test_the_contact_sheet_shows_the_worst_first_in_the_direction_of_the_metric(command, tmp_path):
    """The highest scores, here."""

    service = Numbered("clip@1", metrics=METRICS)
    command(service, "batch", "rows.jsonl", "-o", "out.jsonl", "-m", "distance", "--html", "sheet.html")
    page = (tmp_path / "sheet.html").read_text("utf-8")

    assert page.index("prompt 39<") < page.index("prompt 20<") < page.index("prompt 0<")
