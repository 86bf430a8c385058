"""Pictures in one request, from Python: what the commands score, rank and decide with."""

import json
from dataclasses import replace
from functools import partial

import pytest

from scoregate import Client, local
from scoregate.errors import InputError, NoResultError
from scoregate.runs.request import (
    DecisionSettings,
    RankingSettings,
    ScoringSettings,
    decide_images,
    rank_images,
    score_images,
)
from tests.support.pauses import Unpaused
from tests.support.pictures import png
from tests.unit.client.cli.served import Service, metric
from tests.unit.client.decisions.test_decide import decided

WARNING = {"warnings": ["item 0: vqascore: the text is cut"]}


@pytest.fixture
def service():
    """A service of a metric whose lower scores are better."""
    return Service("clip@1", metrics={"vqascore": metric("lower is better")})


@pytest.fixture
def served(service, monkeypatch, tmp_path, waited):
    """Where the scores come from, beside a folder with two pictures and a broken one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for name, data in (("a.png", png("red")), ("b.png", png()), ("c.png", b"")):
        (tmp_path / "photos" / name).write_bytes(data)
    monkeypatch.setattr(local, "Client", partial(Client, transport=Unpaused(service, waited)))
    return local.Service(base_url="http://test")


def test_scores_have_the_names_of_what_they_are_about(served):
    """A picture that cannot be read is a line, and the scores are not complete."""
    found = score_images(ScoringSettings(images=["photos"], prompts=["x", "y"]), served)

    assert [
        'photos/a.png, "x"',
        'photos/a.png, "y"',
        'photos/b.png, "x"',
        'photos/b.png, "y"',
    ] == found.places
    assert (False, 1, {"vqascore"}) == (found.complete, len(found.faults), found.lower)
    assert found.faults[0].startswith("photos/c.png: ")
    assert 4 == len(found.report) == found.figures["vqascore"].count


def test_settings_are_strict_whatever_the_service_is(served, service):
    """The score that has a warning is missing then."""
    service.more = WARNING
    settings = ScoringSettings(images=["photos/a.png"], prompts=["x"])
    strict = ScoringSettings(images=["photos/a.png"], prompts=["x"], strict=True)

    assert score_images(settings, served).complete
    assert "warned" == score_images(strict, served).report[0].errors["vqascore"].code


def test_decisions_are_written_into_the_file_of_the_settings(served, answered, tmp_path):
    """Before the request a file that is no JSON is refused."""
    service = local.Service.of(answered(decided))
    settings = DecisionSettings(images=["photos/a.png"], prompt="x", out=tmp_path / "out.json")
    found = decide_images(settings, service)

    assert found.as_json() == json.loads((tmp_path / "out.json").read_text("utf-8"))
    with pytest.raises(InputError, match="is not one JSON value"):
        decide_images(replace(settings, out=tmp_path / "photos" / "a.png"), served)


def test_a_broken_picture_ends_a_ranking_unless_it_may_be_blocked(served, service):
    """Before the request; else the others are ranked."""
    with pytest.raises(NoResultError, match=r"photos/c.png: .*; `on_error` pass or block ranks the others"):
        rank_images(RankingSettings(images=["photos"], prompt="x"), served)
    assert [] == service.sent
    found = rank_images(RankingSettings(images=["photos"], prompt="x", on_error="block"), served)

    assert (["photos/a.png", "photos/b.png"], 2, 1) == (found.names, len(found.ranking), len(found.faults))
    assert not found.complete


def test_a_ranking_by_two_metrics_is_bad_input(served, service):
    """Of two names with a comma between them."""
    with pytest.raises(InputError, match="rank orders by one metric"):
        rank_images(RankingSettings(images=["photos/a.png"], prompt="x", metric="vqascore,dsg"), served)
    assert [] == service.sent
