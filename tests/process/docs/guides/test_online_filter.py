"""docs/guides/online-filter.md: a threshold, and a decision in any case."""

import re
import runpy
import shlex

import pytest

import scoregate
from demo.process import free_port, url
from scoregate.cli.main import parser
from service.observability.instruments import Instruments
from tests.support.packages import files_of
from tests.support.pages import fences
from tests.support.pictures import png

PAGE, FILE = "online-filter.md", "picture_filter.py"


@pytest.fixture(scope="module")
def caller(fake_service):
    """A client as the page sets it up, with time for a busy machine."""
    with scoregate.Client(fake_service.url, timeout_s=60, retries=0) as caller:
        yield caller


def test_the_commands_of_the_page_are_valid():
    """The arguments that choose a threshold."""
    (_, commands), _ = fences(f"guides/{PAGE}", "sh")

    assert ["batch", "calibrate"] == [
        parser().parse_args(shlex.split(line)[1:]).command for line in commands.splitlines()
    ]


@pytest.mark.parametrize("fail_open", [True, False])
def test_a_picture_with_a_score_is_decided_by_the_threshold(module, caller, fail_open):
    """Whichever way failures go."""
    shown = module(PAGE, FILE)
    decision = shown.Filter(caller, 0.0, fail_open).decide(png(), 'a "red" square')

    assert decision.show
    assert "scored" == decision.reason
    assert not shown.Filter(caller, decision.score + 1e-9, fail_open).decide(png(), 'a "red" square').show


@pytest.mark.parametrize("fail_open", [True, False])
def test_without_a_score_the_filter_fails_as_it_was_told(module, caller, fail_open):
    """A broken picture, a refused request and a service that is away: open or closed, with the reason."""
    shown = module(PAGE, FILE)
    here = shown.Filter(caller, 0.5, fail_open)
    with scoregate.Client(url(free_port(0)), retries=0) as nobody:
        away = shown.Filter(nobody, 0.5, fail_open).decide(png(), "x")
    decisions = [here.decide(png()[:40], "x"), here.decide(png(), " "), away]

    assert [fail_open] * 3 == [decision.show for decision in decisions]
    assert [None] * 3 == [decision.score for decision in decisions]
    assert ["image_undecodable", "invalid", "connection_failed"] == [
        decision.reason for decision in decisions
    ]


def test_the_best_candidate_is_first(fake_service, tmp_path, monkeypatch, capsys, caller):
    """A candidate without a score is not accepted."""
    monkeypatch.setenv("SCOREGATE_BASE_URL", fake_service.url)
    monkeypatch.chdir(tmp_path)
    for name, picture in {"cat": png("orange"), "dog": png("brown"), "broken": png()[:40]}.items():
        (tmp_path / f"{name}.png").write_bytes(picture)
    (tmp_path / "best.py").write_text(files_of(f"guides/{PAGE}")["best.py"].replace("0.5", "0.0"), "utf-8")
    scores = [caller.score(tmp_path / f"{name}.png", "a cat").value for name in ("cat", "dog")]

    runpy.run_path(str(tmp_path / "best.py"))

    assert str([0, 1] if scores[0] >= scores[1] else [1, 0]) == capsys.readouterr().out.strip()


@pytest.mark.parametrize("page", [PAGE, "troubleshooting.md"])
def test_queries_name_instruments_that_exist(page):
    """The PromQL of the guides uses series that this service exposes."""
    instruments = Instruments(["vqa"], {"vqascore": (0, 1)})
    series = {sample.name for family in instruments.registry.collect() for sample in family.samples}
    queries = [text for _, text in fences(f"guides/{page}", "promql")]

    assert queries
    assert {name for query in queries for name in re.findall(r"scoregate_\w+", query)} <= series
