"""Results as notebooks show them."""

import base64
import re

import httpx2 as httpx
import numpy as np

from tests.support.answers import scored
from tests.support.pictures import png

EVIL = "<script>alert(1)</script> & 'x'"


def shown(html):
    """The files of the pictures in it."""
    return [base64.b64decode(data) for data in re.findall(r"src='data:image/\w+;base64,([^']+)'", html)]


def answer(request):
    """Questions and an error, all written by somebody who means harm."""
    questions = [{"text": EVIL, "answer": EVIL, "score": 1.0}, {"text": EVIL, "answer": "no", "score": None}]
    results = [
        {
            "index": 0,
            "scores": {"vqascore": 0.5},
            "details": {"vqascore": {"questions": questions}},
            "errors": {EVIL: {"code": EVIL, "detail": EVIL}},
        }
    ]
    return scored(request, results=results, models={"vqa": EVIL})


def test_a_score_shows_its_picture_its_value_and_its_questions(answered):
    """The file that was sent, if it is not large."""
    html = answered(answer).score(png(), EVIL)._repr_html_()

    assert [png()] == shown(html)
    assert "0.5000" in html
    assert "1.000" in html
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 5


def test_a_report_shows_each_item_and_its_errors(answered):
    """Nothing of a caller's or a model's text is HTML."""
    html = answered(answer).score_items([(png(), EVIL)])._repr_html_()

    assert [png()] == shown(html)
    assert "vqascore <b>0.5000</b>" in html
    assert "<script" not in html


def test_a_ranking_shows_its_order(answered):
    """With who was accepted and why not."""
    ranking = [
        {"index": 1, "score": 0.75, "accepted": True, "decided_by": EVIL},
        {"index": 0, "accepted": False, "error": {"code": EVIL, "detail": EVIL}},
    ]
    client = answered(lambda request: httpx.Response(200, json={"request_id": "r", "ranking": ranking}))
    html = client.rank("x", [png(), png("blue")])._repr_html_()

    assert "0.7500" in html
    assert "<script" not in html


def test_a_large_picture_is_shown_small(answered):
    """The notebook's file would have a megabyte for each."""
    large = np.zeros((1024, 1024, 3), np.uint8)
    [file] = shown(answered(scored).score(large, "x")._repr_html_())

    assert len(file) < 100_000


def test_many_pictures_are_not_kept(answered):
    """A report holds the first few, and says how many more there are."""
    html = answered(scored).score_items([(png(), "x")] * 40)._repr_html_()

    assert 16 == len(shown(html))
    assert "and 24 more" in html
    assert shown(answered(scored).score(b"no picture", "x")._repr_html_()) == []
