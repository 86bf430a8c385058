"""docs/guides/online-filter.md: a threshold, and a decision in any case."""

import re

import httpx
import pytest

from demo.process import free_port, url
from service.observability.instruments import Instruments
from tests.support.pages import fences
from tests.support.pictures import png

PAGE, FILE = "online-filter.md", "picture_filter.py"


def test_the_threshold_keeps_the_share_of_good_pictures_that_was_asked_for(module):
    """The highest such threshold, and the share of bad ones above it."""
    threshold = module(PAGE, "threshold.py").threshold
    scores = [0.9, 0.8, 0.7, 0.6, 0.65, 0.3]
    good = [True, True, True, True, False, False]

    assert (0.6, 0.5) == threshold(scores, good, keep=1.0)
    assert (0.7, 0.0) == threshold(scores, good, keep=0.75)


@pytest.mark.parametrize("fail_open", [True, False])
def test_a_picture_with_a_score_is_decided_by_the_threshold(module, client, fail_open):
    """Whichever way failures go."""
    shown = module(PAGE, FILE)
    decision = shown.Filter(client, 0.0, fail_open).decide(png(), 'a "red" square')

    assert decision.show
    assert "scored" == decision.reason
    assert not shown.Filter(client, decision.score + 1e-9, fail_open).decide(png(), 'a "red" square').show


@pytest.mark.parametrize("fail_open", [True, False])
def test_without_a_score_the_filter_fails_as_it_was_told(module, client, fail_open):
    """A broken picture, a refused request and a service that is away: open or closed, with the reason."""
    shown = module(PAGE, FILE)
    here = shown.Filter(client, 0.5, fail_open)
    with httpx.Client(base_url=url(free_port(0)), trust_env=False) as nobody:
        away = shown.Filter(nobody, 0.5, fail_open).decide(png(), "x")
    decisions = [here.decide(png()[:40], "x"), here.decide(png(), " "), away]

    assert [fail_open] * 3 == [decision.show for decision in decisions]
    assert [None] * 3 == [decision.score for decision in decisions]
    assert ["image_undecodable", "invalid"] == [decision.reason for decision in decisions[:2]]


def test_the_best_candidate_has_the_highest_score(module, client):
    """Candidates without a score cannot win."""
    pictures = [png("red"), png("blue"), png()[:40], png("green")]
    best = module(PAGE, "best.py").best(client, pictures, "a square")
    scores = [
        module(PAGE, FILE).Filter(client, 0, False).decide(picture, "a square").score or -1
        for picture in pictures
    ]

    assert scores.index(max(scores)) == best
    with pytest.raises(ValueError, match="empty"):
        module(PAGE, "best.py").best(client, [png()[:40]], "a square")


@pytest.mark.parametrize("page", [PAGE, "troubleshooting.md"])
def test_queries_name_instruments_that_exist(page):
    """The PromQL of the guides uses series that this service exposes."""
    instruments = Instruments(["vqa"], {"vqascore": (0, 1)})
    series = {sample.name for family in instruments.registry.collect() for sample in family.samples}
    queries = [text for _, text in fences(f"guides/{page}", "promql")]

    assert queries
    assert {name for query in queries for name in re.findall(r"scoregate_\w+", query)} <= series
